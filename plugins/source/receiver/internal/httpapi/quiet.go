package httpapi

import (
	"sync"
	"time"
)

// sayEvery is how often the same is said in the log.
const sayEvery = 10 * time.Second

// quiet keeps what happens many times from being said as often.
type quiet struct {
	mu   sync.Mutex
	last map[string]time.Time
	left map[string]int
}

// shouldLog reports whether something is to be said now, and how often it was not since
// the last time.
func (q *quiet) shouldLog(what string, now time.Time) (unsaid int, due bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil {
		q.last, q.left = map[string]time.Time{}, map[string]int{}
	}
	if now.Sub(q.last[what]) < sayEvery {
		q.left[what]++
		return 0, false
	}
	unsaid = q.left[what]
	q.last[what], q.left[what] = now, 0
	return unsaid, true
}
