package record

import (
	"iter"
	"slices"
	"strconv"
)

// PartKey is the meta key of records that are a part of a run which has a record of its
// own, such as those of Grid Engine's slave tasks. Its value says what the part is.
const PartKey = "run_part"

// IsPart reports whether the record of that meta is a part of a run. All other records are
// runs, which is what jobs are counted by.
func (m Meta) IsPart() bool { return len(m.Get(PartKey)) > 0 }

// EndKeys are the keys that records have of how a run ended, beside their meta. A record
// whose meta has such a key has that instead.
func EndKeys() []string { return []string{"state", "exit_code", "exit_signal"} }

// IsEndKey reports whether a key is one of [EndKeys].
func IsEndKey(key string) bool { return slices.Contains(EndKeys(), key) }

// Values returns the values of a key, of meta or of [EndKeys]; false where the record does
// not have the key.
func (r *Record) Values(key string) (values []string, ok bool) {
	for i := range r.Meta {
		if r.Meta[i].Key == key {
			return r.Meta[i].Values, true
		}
	}
	return EndValues(key, r.State, r.Exit)
}

// EndValues returns the values of a key of [EndKeys] for an end; false where it is not known
// or the key is another.
func EndValues(key, state string, exit Exit) (values []string, ok bool) {
	switch {
	case key == "state" && state != "":
		return []string{state}, true
	case key == "exit_code" && exit.Known:
		return []string{strconv.Itoa(int(exit.Code))}, true
	case key == "exit_signal" && exit.Known:
		return []string{strconv.Itoa(int(exit.Signal))}, true
	}
	return nil, false
}

// Keys yields the keys of a record with their values, those of [EndKeys] last.
func (r *Record) Keys() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for i := range r.Meta {
			if !yield(r.Meta[i].Key, r.Meta[i].Values) {
				return
			}
		}
		for _, key := range EndKeys() {
			if slices.ContainsFunc(r.Meta, func(e MetaEntry) bool { return e.Key == key }) {
				continue
			}
			if values, ok := EndValues(key, r.State, r.Exit); ok && !yield(key, values) {
				return
			}
		}
	}
}
