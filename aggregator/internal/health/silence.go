package health

import (
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

const (
	// DefaultSilence is the pause that is allowed while nothing is learnt.
	DefaultSilence = record.Hour
	// least is the shortest pause that is allowed.
	least = 5 * record.Minute
	// enough pauses are seen before they say what is usual.
	enough = 10
	// days are remembered.
	days = 14
)

// Learner is safe for use by many goroutines. The zero Learner knows nothing.
type Learner struct {
	mu      sync.Mutex
	sources map[record.Origin]*sourceState
}

// sourceState is what is known of a source.
type sourceState struct {
	mark   mark
	spoke  record.Time
	agent  record.Time // when anything of its agent came
	seen   bool        // it has spoken while it was watched
	pauses int
	days   []longest // in order
}

// mark changes when a source speaks.
type mark struct {
	watermark record.Time
	pulled    int64
}

// longest is the longest pause that ended in a day.
type longest struct{ day, pause record.Time }

// Look takes in what the store knows of the sources at an instant. It is called
// whenever something may have come.
func (l *Learner) Look(now record.Time, agents []store.Cursor, counters []store.SourceCounts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sources == nil {
		l.sources = map[record.Origin]*sourceState{}
	}
	pulled := map[record.Origin]int64{}
	for i := range counters {
		pulled[counters[i].Source] = counters[i].Counts.Pulled
	}
	for i := range agents {
		a := &agents[i]
		marks := map[record.Origin]record.Time{}
		for _, c := range a.Checkpoints {
			marks[c.Source] = record.None
		}
		for _, w := range a.Watermarks {
			marks[w.Source] = w.CompleteTo
		}
		for source, watermark := range marks {
			l.updateSource(now, source, mark{watermark, pulled[source]}, a.Pulled)
		}
	}
}

// updateSource takes in one source. l.mu is held.
func (l *Learner) updateSource(now record.Time, source record.Origin, m mark, pulled record.Time) {
	b := l.sources[source]
	defer func() { l.sources[source].agent = pulled }()
	switch {
	case b == nil:
		b = &sourceState{mark: m, spoke: pulled}
		if m.watermark.Present() {
			b.spoke = min(m.watermark, now)
		}
		l.sources[source] = b
	case b.mark != m:
		if b.seen {
			b.addPause(now, now-b.spoke)
		}
		b.mark, b.spoke, b.seen = m, now, true
	}
}

func (b *sourceState) addPause(now, pause record.Time) {
	b.pauses++
	day := now - now%record.Day
	if n := len(b.days); n == 0 || b.days[n-1].day != day {
		b.days = append(b.days, longest{day: day})
	}
	last := &b.days[len(b.days)-1]
	last.pause = max(last.pause, pause)
	b.days = slices.DeleteFunc(b.days, func(d longest) bool { return d.day <= day-days*record.Day })
}

// allowedPause is the pause after which the source is silent.
func (b *sourceState) allowedPause() record.Time {
	if b.pauses < enough {
		return DefaultSilence
	}
	pauses := make([]record.Time, len(b.days))
	for i, d := range b.days {
		pauses[i] = d.pause
	}
	slices.Sort(pauses)
	usual := pauses[max(0, len(pauses)-2)]
	return max(least, usual+usual/2+record.Minute)
}

// lastSpoke is when the source spoke last. One that gives no watermark and of which
// little has come may well have nothing to say: then its agent speaks for it.
func (b *sourceState) lastSpoke() record.Time {
	if b.pauses < enough && !b.mark.watermark.Present() {
		return max(b.spoke, b.agent)
	}
	return b.spoke
}

// Allowed returns the pause after which the source is silent.
func (l *Learner) Allowed(source record.Origin) record.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.sources[source]; b != nil {
		return b.allowedPause()
	}
	return DefaultSilence
}

// Silence is a source that has said nothing for longer than is usual.
type Silence struct {
	Source  record.Origin
	Since   record.Time // when it spoke last
	Allowed record.Time
}

// Silent returns the sources that are silent at an instant, in order.
func (l *Learner) Silent(now record.Time) (list []Silence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for source, b := range l.sources {
		if allowed := b.allowedPause(); now-b.lastSpoke() > allowed {
			list = append(list, Silence{source, b.lastSpoke(), allowed})
		}
	}
	slices.SortFunc(list, func(a, b Silence) int { return a.Source.Compare(b.Source) })
	return list
}
