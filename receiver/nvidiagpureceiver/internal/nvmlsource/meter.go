// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"sync/atomic"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

const (
	// NVML measures what goes over PCIe for 20 ms in each direction, and the caller waits: not a scrape, but a goroutine.
	measureEvery = 5 * time.Second
	// A measurement that is older is not told.
	measuredWithin = 3 * measureEvery
)

// meter measures PCIe on devices that have neither counters of bytes nor performance monitoring.
type meter struct {
	cards []metered
	now   func() time.Time
	quit  chan struct{}
	done  chan struct{}
}

type metered struct {
	dev                nvml.Device
	uuid               string
	received, sent, at atomic.Int64 // bytes a second, −1 where it is not told; Unix nanoseconds
}

// readRates tells what was measured last. The first reading starts the measurements.
func readRates(s *Source, c *card, r *reading) {
	if r.d.Has(gpu.PCIeReceiveRate) || r.d.Has(gpu.PCIeTransmitRate) || c.profile.able && !c.profile.refused {
		return
	}
	if s.meter == nil {
		s.meter = measure(s.cards, s.now)
	}
	for i := range s.meter.cards {
		m := &s.meter.cards[i]
		if m.uuid != c.uuid || s.now().UnixNano()-m.at.Load() > int64(measuredWithin) {
			continue
		}
		if v := m.received.Load(); v >= 0 {
			r.d.Set(gpu.PCIeReceiveRate, float64(v))
		}
		if v := m.sent.Load(); v >= 0 {
			r.d.Set(gpu.PCIeTransmitRate, float64(v))
		}
	}
}

func measure(cards []*card, now func() time.Time) *meter {
	m := &meter{now: now, quit: make(chan struct{}), done: make(chan struct{}), cards: make([]metered, len(cards))}
	for i, c := range cards {
		if c.here {
			m.cards[i].dev, m.cards[i].uuid = c.dev, c.uuid
		}
	}
	go m.run()
	return m
}

func (m *meter) run() {
	defer close(m.done)
	for {
		for i := range m.cards {
			select {
			case <-m.quit:
				return
			default:
			}
			if c := &m.cards[i]; c.uuid != "" {
				c.received.Store(rate(c.dev, false))
				c.sent.Store(rate(c.dev, true))
				c.at.Store(m.now().UnixNano())
			}
		}
		select {
		case <-m.quit:
			return
		case <-time.After(measureEvery):
		}
	}
}

// rate is in bytes a second, −1 where the device does not tell.
func rate(dev nvml.Device, transmit bool) int64 {
	kB, o := dev.PCIeThroughput(transmit)
	if o != nvml.OK {
		return -1
	}
	return int64(kB) * 1000
}

// stop ends the measurements; it waits for the one under way.
func (m *meter) stop() {
	if m == nil {
		return
	}
	close(m.quit)
	<-m.done
}
