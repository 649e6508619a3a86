package record

import (
	"slices"
	"strings"
)

// Kind says how a component's amount relates to time.
type Kind uint8

const (
	// Rate is used for as long as the record runs (cores, memory, GPUs):
	// usage is amount × time.
	Rate Kind = iota
	// Total was consumed over the whole run (CPU seconds, joules, bytes) and
	// is spread over it evenly. On a running record it is what was last seen.
	Total
)

// String returns "rate" or "total".
func (k Kind) String() string {
	if k == Total {
		return "total"
	}
	return "rate"
}

// ParseKind reads what [Kind.String] gives; false for anything else.
func ParseKind(s string) (Kind, bool) {
	switch s {
	case Rate.String():
		return Rate, true
	case Total.String():
		return Total, true
	}
	return Rate, false
}

// Kinds are the kinds of components by name, where a record does not say them. What
// is not there is a [Rate].
type Kinds map[string]Kind

// Apply returns r with the kinds of the components that k names; false when they are
// these already.
func (k Kinds) Apply(r *Record) (Record, bool) {
	out, changed := *r, false
	for i := range r.Components {
		kind, named := k[r.Components[i].Name]
		if !named || kind == r.Components[i].Kind {
			continue
		}
		if !changed {
			out.Components, changed = slices.Clone(r.Components), true
		}
		out.Components[i].Kind = kind
	}
	return out, changed
}

// Score is a benchmark value of a component, for example HEPScore23 per core.
type Score struct {
	Name  string
	Value float64 // ≥ 0 and finite
}

// Component is one resource of a run.
type Component struct {
	Name   string
	Amount int64 // ≥ 0
	Kind   Kind
	Scores []Score // order is kept
}

// MetaEntry is one key of a record's meta with its values, whose order is kept.
type MetaEntry struct {
	Key    string
	Values []string
}

// Meta holds a record's meta sorted by key, each key once. A nil Meta is absent
// (null in JSON); an empty one is an empty object.
type Meta []MetaEntry

// Get returns the values of key; nil when the key is not there.
func (m Meta) Get(key string) []string {
	i, ok := slices.BinarySearchFunc(m, key, func(e MetaEntry, k string) int { return strings.Compare(e.Key, k) })
	if !ok {
		return nil
	}
	return m[i].Values
}

// Sorted sorts m by key in place and returns it.
func (m Meta) Sorted() Meta {
	slices.SortFunc(m, func(a, b MetaEntry) int { return strings.Compare(a.Key, b.Key) })
	return m
}

// Exit is how a run ended: its exit code and, when a signal ended it, that
// signal's number. Known is false when no one said.
type Exit struct {
	Known  bool
	Code   int32
	Signal int32
}

// Record is what one run of a job used. The fields up to Stop are AUDITOR's; the
// others are shown by /v1 only.
//
// A Record is a value that is not changed after it was handed over: those who
// hold one share its slices.
type Record struct {
	ID         string
	Meta       Meta
	Components []Component // order is kept
	Start      Time        // never None
	Stop       Time        // None while the run goes on
	Submit     Time        // None when unknown
	State      string      // end state in the scheduler's word, for example COMPLETED; "" when unknown
	Exit       Exit
}

// Open reports whether the run goes on.
func (r *Record) Open() bool { return r.Stop == None }

// Runtime returns the whole seconds from start to stop, cut toward zero; false
// while the run goes on. A stop before the start gives a negative runtime.
func (r *Record) Runtime() (seconds int64, ok bool) {
	if r.Open() {
		return 0, false
	}
	return int64(r.Stop-r.Start) / int64(Second), true
}

// Negative reports whether the run stops before it starts. Such a record is
// stored and shown; its usage is zero.
func (r *Record) Negative() bool { return r.Stop != None && r.Stop < r.Start }

// Component returns the first component of that name; nil when there is none.
func (r *Record) Component(name string) *Component {
	for i := range r.Components {
		if r.Components[i].Name == name {
			return &r.Components[i]
		}
	}
	return nil
}
