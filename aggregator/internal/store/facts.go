package store

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// facts is what the tables of a batch say of its rows, found out once for each
// entry. A row whose entries are all good needs a look at its own numbers only;
// any other row is put together and looked at as a whole, which alone decides.
type facts struct {
	batch  *columns.Batch
	agent  string
	hasher *rowHasher

	sets, templates, origins, ends []fact // by number - 1
	sources                        []*Counts
	items                          []columns.SetItem
	amounts                        []int64
}

// fact is what is known of an entry.
type fact struct {
	hash   uint64
	good   bool // nothing in it makes a record invalid
	count  int  // of components
	reused bool // the origin reuses ids
}

// smallEntry bounds, in bytes, the entries that are good: records of good entries
// are below record.MaxSize whichever come together.
const smallEntry = record.MaxSize / 8

func newFacts(batch *columns.Batch, agent string, hasher *rowHasher) *facts {
	f := &facts{batch: batch, agent: agent, hasher: hasher, sources: make([]*Counts, batch.Entries(columns.TableOrigin))}
	f.templates = f.mapEntries(columns.TableTemplate, f.templateFact)
	f.origins = f.mapEntries(columns.TableOrigin, f.originFact)
	f.ends = f.mapEntries(columns.TableEnd, f.endFact)
	pairs := f.mapEntries(columns.TablePair, f.pairFact)
	f.sets = f.mapEntries(columns.TableSet, func(id uint32) fact { return f.metaSetFact(id, pairs) })
	return f
}

func (f *facts) mapEntries(t columns.Table, one func(id uint32) fact) []fact {
	list := make([]fact, f.batch.Entries(t))
	for i := range list {
		list[i] = one(uint32(i + 1))
	}
	return list
}

func (f *facts) templateFact(id uint32) fact {
	cs := f.batch.Template(id)
	probe := record.Record{ID: "x", Components: cs, Stop: record.None, Submit: record.None}
	size := 0
	for i := range cs {
		size += 64 + len(cs[i].Name)
		for k := range cs[i].Scores {
			size += 64 + len(cs[i].Scores[k].Name)
		}
	}
	good := len(cs) <= columns.MaxAmounts && size <= smallEntry && probe.Validate() == nil
	return fact{hash: f.hasher.hashTemplate(cs), good: good, count: len(cs)}
}

func (f *facts) originFact(id uint32) fact {
	o, rank := f.batch.OriginAt(id)
	return fact{hash: f.hasher.hashOrigin(o), good: checkOrigin(f.agent, o, rank, record.Version{Observed: 1}) == nil}
}

// setReusing notes the origins that reuse ids.
func (f *facts) setReusing(origins []record.Origin) {
	for i := range f.origins {
		o, _ := f.batch.OriginAt(uint32(i + 1))
		f.origins[i].reused = slices.Contains(origins, o)
	}
}

// reusesIDs reports whether the origin of row i reuses ids.
func (f *facts) reusesIDs(i int) bool { return f.origins[f.batch.Refs(i).Origin-1].reused }

func (f *facts) endFact(id uint32) fact {
	state, exit := f.batch.End(id)
	probe := record.Record{ID: "x", Stop: record.None, Submit: record.None, State: state, Exit: exit}
	return fact{good: len(state) <= smallEntry && probe.Validate() == nil}
}

// pairFact checks one value; count is its size.
func (f *facts) pairFact(id uint32) fact {
	key, value, has := f.batch.Pair(id)
	good := record.ValidateName(key) == "" && (!has || record.ValidateName(value) == "")
	return fact{hash: f.hasher.hashValue(key, value, has), good: good, count: 64 + len(key) + len(value)}
}

// metaSetFact puts a meta's hash together from those of its values. A set that is not in
// the one form that builders give it is not good.
func (f *facts) metaSetFact(id uint32, pairs []fact) fact {
	var present bool
	f.items, present = f.batch.AppendSet(f.items[:0], id)
	out, size, last := fact{good: true}, 0, ""
	f.hasher.beginMeta(present)
	for i, item := range f.items {
		p := &pairs[item.Pair-1]
		key, _, has := f.batch.Pair(item.Pair)
		if item.GoesOn {
			_, _, had := f.batch.Pair(f.items[max(i-1, 0)].Pair)
			out.good = out.good && i > 0 && has && had && key == last
		} else {
			out.good = out.good && (i == 0 || last < key)
		}
		out.good, last = out.good && p.good, key
		size += p.count
		f.hasher.addValue(p.hash, item.GoesOn)
	}
	out.hash = f.hasher.endMeta()
	out.good = out.good && size <= smallEntry
	return out
}

// isCertainlyValid reports whether row i, of which own has been read, is certainly valid.
func (f *facts) isCertainlyValid(own *columns.Row, i int) bool {
	refs := f.batch.Refs(i)
	t := &f.templates[refs.Template-1]
	if !t.good || !f.sets[refs.Set-1].good || !f.origins[refs.Origin-1].good || !f.ends[refs.End-1].good {
		return false
	}
	if own.Tombstone || own.Stop != record.None || own.Version.Observed <= 0 || !timesInRange(&own.Record) {
		return false
	}
	f.amounts = f.batch.AppendAmounts(f.amounts[:0], i, t.count)
	for _, amount := range f.amounts {
		if amount < 0 {
			return false
		}
	}
	return record.ValidateID(own.Record.ID) == nil
}

func timesInRange(r *record.Record) bool {
	in := func(t record.Time) bool { return t >= record.MinTime && t <= record.MaxTime }
	return in(r.Start) && (r.Stop == record.None || in(r.Stop)) && (r.Submit == record.None || in(r.Submit))
}

// rowHash returns the hash of row i, of which own has been read and numbered.
func (f *facts) rowHash(own *columns.Row, i int) Hash {
	refs := f.batch.Refs(i)
	s, t := &f.sets[refs.Set-1], &f.templates[refs.Template-1]
	if !s.good || !t.good {
		whole := f.batch.Row(i)
		whole.Seq, whole.Received, whole.Changed, whole.Version = own.Seq, own.Received, own.Changed, own.Version
		return f.hasher.hashRow(&whole)
	}
	_, own.Rank = f.batch.OriginAt(refs.Origin)
	own.Record.State, own.Record.Exit = f.batch.End(refs.End)
	f.amounts = f.batch.AppendAmounts(f.amounts[:0], i, t.count)
	return f.hasher.hashRowWith(own, s.hash, t.hash, f.origins[refs.Origin-1].hash, f.amounts)
}

// sourceCounts returns the counters of the source of row i.
func (f *facts) sourceCounts(t *tx, i int) *Counts {
	o := f.batch.Refs(i).Origin - 1
	if f.sources[o] == nil {
		origin, _ := f.batch.OriginAt(o + 1)
		f.sources[o] = t.countsOf(sourceOf(f.agent, origin))
	}
	return f.sources[o]
}
