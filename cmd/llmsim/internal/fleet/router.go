// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math/rand/v2"
	"sort"
)

// router picks a replica for a request. It may look at the engines: they stand
// at the time of the arrival.
type router interface {
	pick(id uint64) *Replica
}

func newRouter(kind string, replicas []*Replica, seed uint64) router {
	switch kind {
	case "least_requests":
		return leastRequests(replicas)
	case "random":
		r := &weighted{replicas: replicas, seed: seed}
		for _, rep := range replicas {
			r.total += rep.Weight
			r.upTo = append(r.upTo, r.total)
		}
		return r
	}
	return roundRobin(replicas)
}

type roundRobin []*Replica

func (r roundRobin) pick(id uint64) *Replica { return r[id%uint64(len(r))] }

// leastRequests picks who has the fewest requests waiting and running; of
// several, round robin, or an idle fleet would send everything to the first.
type leastRequests []*Replica

func (r leastRequests) pick(id uint64) *Replica {
	n := uint64(len(r))
	best := r[id%n]
	for i := uint64(1); i < n; i++ {
		if c := r[(id+i)%n]; c.Engine.InFlight() < best.Engine.InFlight() {
			best = c
		}
	}
	return best
}

// weighted picks at random by weight.
type weighted struct {
	replicas []*Replica
	upTo     []float64 // cumulative weights
	total    float64
	seed     uint64
}

func (r *weighted) pick(id uint64) *Replica {
	u := rand.New(rand.NewPCG(r.seed, id)).Float64() * r.total
	i := sort.Search(len(r.upTo), func(i int) bool { return r.upTo[i] > u })
	return r.replicas[min(i, len(r.replicas)-1)]
}
