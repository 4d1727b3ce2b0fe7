// SPDX-License-Identifier: Apache-2.0

package trend

// view is a series as cells of one width: the newest of one level that are complete.
type view struct {
	x, y     []float64 // seconds since its begin, bytes
	explains [explanations][]float64
	serves   []float64 // requests that were finished, by cell
	served   float64   // of all of them
	known    int       // cells whose traffic is known
	at       int64     // when it begins
	span     float64   // seconds from begin to end
	width    float64   // seconds of a cell
}

// view fills v with the cells of a level that begin at or after a time, which loading a model has ended.
func (j *Judge) view(s *Series, level uint8, from int64, v *view) {
	v.x, v.y, v.serves, v.served, v.known, v.span = v.x[:0], v.y[:0], v.serves[:0], 0, 0, 0
	for k := range v.explains {
		v.explains[k] = v.explains[k][:0]
	}
	var running, peak, cache float64
	var hasRunning, hasCache bool
	first, complete := start(s.newest, level), s.newest>>level<<level
	seconds := float64(j.width) * 1e-9
	v.width = float64(int64(1)<<level) * seconds
	for i := 0; i < len(s.cells); {
		c := s.cells[i]
		i++
		if c.at < first || c.level > level {
			peak = max(peak, c.peak)
			running, cache, hasRunning, hasCache = carry(&c, running, cache, hasRunning, hasCache)
			continue
		}
		if c.at >= complete {
			break
		}
		c.at, c.level = c.at>>level<<level, level
		for i < len(s.cells) && s.cells[i].at < c.end() {
			c.add(&s.cells[i])
			i++
		}
		peak = max(peak, c.peak)
		running, cache, hasRunning, hasCache = carry(&c, running, cache, hasRunning, hasCache)
		if c.n == 0 || c.at*j.width < from {
			continue
		}
		if len(v.x) == 0 {
			v.at = c.at
		}
		if c.loads > 0 {
			v.known++
		}
		v.served += c.served
		v.serves = append(v.serves, c.served)
		v.x = append(v.x, float64(c.at-v.at)*seconds)
		v.y = append(v.y, c.bytes/float64(c.n))
		v.explains[byRunning] = append(v.explains[byRunning], running)
		v.explains[byPeak] = append(v.explains[byPeak], peak)
		v.explains[byCache] = append(v.explains[byCache], cache)
		v.span = float64(c.end()-v.at) * seconds
	}
	if !hasRunning {
		v.explains[byRunning], v.explains[byPeak] = v.explains[byRunning][:0], v.explains[byPeak][:0]
	}
	if !hasCache {
		v.explains[byCache] = v.explains[byCache][:0]
	}
}

// carry is the traffic of a cell, or of the one before where it says nothing of it.
func carry(c *cell, running, cache float64, hasRunning, hasCache bool) (nowRunning, nowCache float64, isRunning, isCache bool) {
	if c.loads > 0 {
		running, hasRunning = c.load/float64(c.loads), true
	}
	if c.caches > 0 {
		cache, hasCache = c.cache/float64(c.caches), true
	}
	return running, cache, hasRunning, hasCache
}

// adjusts reports whether there is traffic by which memory is explained.
func (v *view) adjusts() bool {
	return len(v.explains[byRunning]) > 0 || len(v.explains[byCache]) > 0
}
