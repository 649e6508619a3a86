package access

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Rows are the records that a principal may see, by their meta. The zero value
// is none.
type Rows struct {
	all  bool
	some [][]store.MetaTest // one of these must hold whole; never nil when all is false and the filter is used
}

// AllRows is every record.
func AllRows() Rows { return Rows{all: true} }

// Grant is a rule of a reader: a record must have all keys, and under each one
// of its values.
type Grant map[string][]string

// SomeRows are the records that at least one of the grants gives. A grant without
// keys, or with a key without values, gives none.
func SomeRows(grants ...Grant) Rows {
	var r Rows
	for _, g := range grants {
		if tests := g.metaTests(); tests != nil {
			r.some = append(r.some, tests)
		}
	}
	return r
}

func (g Grant) metaTests() []store.MetaTest {
	var tests []store.MetaTest
	for key, values := range g {
		if len(values) == 0 {
			return nil
		}
		tests = append(tests, store.MetaTest{Key: key, Any: slices.Clone(values)})
	}
	slices.SortFunc(tests, func(a, b store.MetaTest) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return tests
}

// TestedRows are the records of which all tests of one of the lists hold.
func TestedRows(some [][]store.MetaTest) Rows { return Rows{some: some} }

// All reports whether every record is seen.
func (r Rows) All() bool { return r.all }

// allowedTests is the filter as the store takes it: nil for none, and never nil when
// there is one.
func (r Rows) allowedTests() [][]store.MetaTest {
	switch {
	case r.all:
		return nil
	case r.some == nil:
		return [][]store.MetaTest{}
	}
	return r.some
}

// hasMeta reports whether a record with that meta is seen.
func (r Rows) hasMeta(m record.Meta) bool { return r.all || store.MetaAllowed(r.some, m) }

// Only are the values of a key of which every record that is seen has one, sorted; nil where
// also others are seen.
func (r Rows) Only(key string) (values []string) {
	if r.all {
		return nil
	}
	for _, tests := range r.some {
		i := slices.IndexFunc(tests, func(t store.MetaTest) bool { return t.Key == key && len(t.Any) > 0 })
		if i < 0 {
			return nil
		}
		values = append(values, tests[i].Any...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// Cover reports whether every record with these values of keys is seen.
func (r Rows) Cover(values map[string]string) bool {
	return r.all || slices.ContainsFunc(r.some, func(tests []store.MetaTest) bool {
		return len(tests) > 0 && !slices.ContainsFunc(tests, func(t store.MetaTest) bool {
			value, is := values[t.Key]
			return !is || !slices.Contains(t.Any, value)
		})
	})
}

// Names reports whether the value of a key may be named to who sees these records: all
// may be where all records are seen, and otherwise those of the grants.
func (r Rows) Names(key, value string) bool {
	return r.all || slices.ContainsFunc(r.some, func(tests []store.MetaTest) bool {
		return slices.ContainsFunc(tests, func(t store.MetaTest) bool { return t.Key == key && slices.Contains(t.Any, value) })
	})
}
