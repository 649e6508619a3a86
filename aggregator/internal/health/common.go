package health

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// common is what the metas of all records of a source have in common: keys with the same
// values in each.
type common map[record.Origin]record.Meta

// addMeta takes in the meta of a record. What is kept before is never changed: it may have been returned.
func (c common) addMeta(source record.Origin, m record.Meta) {
	same, known := c[source]
	if !known {
		c[source] = cloneMeta(m)
		return
	}
	differs := func(e record.MetaEntry) bool { return !slices.Equal(m.Get(e.Key), e.Values) }
	if slices.ContainsFunc(same, differs) {
		c[source] = slices.DeleteFunc(slices.Clone(same), differs)
	}
}

// cloneMeta copies texts too, which would hold a whole block.
func cloneMeta(m record.Meta) record.Meta {
	out := slices.Clone(m)
	for i := range out {
		e := &out[i]
		e.Key, e.Values = strings.Clone(e.Key), slices.Clone(e.Values)
		for k := range e.Values {
			e.Values[k] = strings.Clone(e.Values[k])
		}
	}
	return out
}

// addBlock takes in the rows of a block that are shown. Rows of one origin with one set of
// values are looked at once, unless values of keys that are still common are in the rows.
func (c common) addBlock(b *columns.Block, shown columns.Mask) error {
	sets, err := b.Sets()
	if err != nil {
		return err
	}
	origins, err := b.Origins()
	if err != nil {
		return err
	}
	type pair struct{ set, origin uint32 }
	done, sources := map[pair]bool{}, map[uint32]record.Origin{}
	for i := range shown.Rows() {
		at := pair{sets[i], origins[i]}
		if done[at] {
			continue
		}
		source, known := sources[at.origin]
		if !known || at.origin == 0 { // which is in the row
			if source, err = b.Origin(i); err != nil {
				return err
			}
			sources[at.origin] = source
		}
		if same, some := c[source]; some && len(same) == 0 {
			continue
		}
		meta, err := b.Meta(i)
		if err != nil {
			return err
		}
		c.addMeta(source, meta)
		if at.origin == 0 {
			continue
		}
		var keys []string
		for _, e := range c[source] {
			keys = append(keys, e.Key)
		}
		varies, err := b.Varies(at.set, keys)
		if err != nil {
			return err
		}
		done[at] = !varies
	}
	return nil
}
