package cli

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ImportSums are counts and sums of records, exact.
type ImportSums struct {
	Ended, Open int64
	// Seconds are the whole seconds of all runs.
	Seconds int64
	// Components are amount × seconds of rates, and the amounts of totals.
	Components map[importComponent]*big.Int
	// First and Last are stops.
	First, Last record.Time

	ids   map[uint64]struct{} // hashes of the records' ids
	fresh []byte              // those since the last position, 8 bytes each
}

type importComponent struct {
	name string
	kind record.Kind
}

// totalMark is behind the name of a total in a position.
const totalMark = "\x00total"

// MarshalText is the component in a position.
func (c importComponent) MarshalText() ([]byte, error) {
	if c.kind == record.Total {
		return []byte(c.name + totalMark), nil
	}
	return []byte(c.name), nil
}

// UnmarshalText reads what MarshalText wrote.
func (c *importComponent) UnmarshalText(text []byte) error {
	*c = importComponent{name: string(text)}
	if name, total := strings.CutSuffix(c.name, totalMark); total {
		*c = importComponent{name, record.Total}
	}
	return nil
}

func newImportSums() *ImportSums {
	return &ImportSums{Components: map[importComponent]*big.Int{}, ids: map[uint64]struct{}{}, First: record.MaxTime, Last: record.MinTime}
}

// addRecord adds a record that was read, and reports whether it is the first of its id. Nil
// adds nothing and knows none.
func (s *ImportSums) addRecord(r *record.Record) (first bool) {
	if s == nil {
		return true
	}
	id := xxhash.Sum64String(r.ID)
	if _, twice := s.ids[id]; twice {
		return false
	}
	s.ids[id] = struct{}{}
	s.fresh = binary.LittleEndian.AppendUint64(s.fresh, id)
	s.addTotals(r)
	return true
}

func (s *ImportSums) addTotals(r *record.Record) {
	seconds, ended := r.Runtime()
	if ended {
		s.Ended++
		s.Seconds += seconds
		s.First, s.Last = min(s.First, r.Stop), max(s.Last, r.Stop)
	} else {
		s.Open++
	}
	for i := range r.Components {
		c := &r.Components[i]
		key := importComponent{c.Name, c.Kind}
		if s.Components[key] == nil {
			s.Components[key] = new(big.Int)
		}
		amount := big.NewInt(c.Amount)
		if c.Kind == record.Rate {
			amount.Mul(amount, big.NewInt(seconds))
		}
		s.Components[key].Add(s.Components[key], amount)
	}
}

// Comparison is what was read beside what the cluster shows of the same records.
type Comparison struct {
	// Equal says that counts and sums are equal, and that all input could be read.
	Equal bool `json:"equal"`
	// Counted is how many records have ended, by the source's second route; nil: unknown.
	Counted *int64 `json:"counted"`
	// Uncounted is why the second route failed; then both sides are not equal.
	Uncounted string `json:"uncounted,omitempty"`
	// Others is how many of the records the cluster shows as another source has them.
	Others int64            `json:"shown_by_others"`
	Lines  []ComparisonLine `json:"lines"`

	differ bool // counts or sums are not equal
}

// ComparisonLine is a count, or a sum.
type ComparisonLine struct {
	What    string `json:"what"`
	Read    string `json:"read"`
	Cluster string `json:"cluster"`
}

// compareImport asks the cluster for the records that were read.
func (p *Program) compareImport(ctx context.Context, src *ImportSource, opt *importOptions, r *ImportResult) (*Comparison, error) {
	c, err := opt.conn.openClient(p)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	cluster := shownRecords{wanted: r.Sums, own: src.originText(), moved: map[uint64]bool{}}
	if err := cluster.readAnswers(func(query url.Values) iter.Seq2[json.RawMessage, error] { return c.Raw(ctx, "/v1/records", query) }); err != nil {
		return nil, err
	}
	out := &Comparison{Others: cluster.others, Lines: compareSums(r.Sums, cluster.sums)}
	out.differ = slices.ContainsFunc(out.Lines, func(l ComparisonLine) bool { return l.Read != l.Cluster })
	defer func() { out.Equal = !out.differ && out.Uncounted == "" && r.Refused == 0 }()
	if r.Sums.Ended == 0 {
		return out, nil
	}
	n, known, err := src.Count(ctx, r.Sums.First.Std(), r.Sums.Last.Std().Add(time.Microsecond))
	if err != nil && ctx.Err() == nil {
		out.Uncounted = err.Error()
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if known {
		out.Counted = &n
		out.differ = out.differ || n > r.Sums.Ended+r.Filtered+r.Quarantined+r.Refused
	}
	return out, nil
}

// recordQueries are for the records, and others: those with a stop about the same time, and the
// open ones.
func (s *ImportSums) recordQueries() (all []url.Values) {
	const margin = 24 * time.Hour // another source may have a later stop
	if s.Ended > 0 {
		all = append(all, url.Values{
			"format": {"ndjson"}, "archived": {"true"}, "stop_time[gte]": {s.First.Std().Add(-margin).UTC().Format(time.RFC3339)}, "stop_time[lte]": {s.Last.Std().Add(margin).UTC().Format(time.RFC3339)},
		})
	}
	return append(all, url.Values{"format": {"ndjson"}, "open": {"true"}})
}

// shownRecords are the records that were read as the cluster shows them.
type shownRecords struct {
	wanted *ImportSums
	own    string // the import's origin
	sums   *ImportSums
	others int64 // that another origin has
	// moved are the ids, as hashes, that were another run's: the records that were read
	// have the time of their run behind it.
	moved map[uint64]bool
}

func (s *shownRecords) readAnswers(answer func(query url.Values) iter.Seq2[json.RawMessage, error]) error {
	for known := -1; known < len(s.moved); { // again where ids were found to be another run's
		known, s.others, s.sums = len(s.moved), 0, newImportSums()
		for _, query := range s.wanted.recordQueries() {
			for raw, err := range answer(query) {
				if err != nil {
					return err
				}
				if err := s.addAnswer(raw); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *shownRecords) addAnswer(raw []byte) error {
	r, err := wire.DecodeRecordJSON(raw)
	if err != nil {
		return fmt.Errorf("a record of the cluster: %w", err)
	}
	id, before := xxhash.Sum64String(r.ID), xxhash.Sum64String(r.ID[:max(strings.LastIndexByte(r.ID, '-'), 0)])
	_, wanted := s.wanted.ids[id]
	_, maybe := s.wanted.ids[before]
	if !wanted && !maybe {
		return nil
	}
	var is struct{ Origin string }
	if err := json.Unmarshal(raw, &is); err != nil {
		return fmt.Errorf("record %s of the cluster: %w", r.ID, err)
	}
	own := is.Origin == s.own
	switch {
	case !wanted && !own || !own && s.moved[id]:
		return nil
	case !wanted:
		s.moved[before] = true
	case !own:
		s.others++
	}
	s.sums.addRecord(&r)
	return nil
}

// compareSums puts both sides beside each other.
func compareSums(read, cluster *ImportSums) []ComparisonLine {
	count := func(what string, a, b int64) ComparisonLine {
		return ComparisonLine{what, strconv.FormatInt(a, 10), strconv.FormatInt(b, 10)}
	}
	lines := []ComparisonLine{count("records that ended", read.Ended, cluster.Ended), count("open records", read.Open, cluster.Open), count("runtime in s", read.Seconds, cluster.Seconds)}
	names := maps.Clone(read.Components)
	maps.Copy(names, cluster.Components)
	for _, key := range slices.SortedFunc(maps.Keys(names), func(a, b importComponent) int {
		return cmp.Or(strings.Compare(a.name, b.name), int(a.kind)-int(b.kind))
	}) {
		what := key.name + " × s"
		if key.kind == record.Total {
			what = key.name + ", total"
		}
		lines = append(lines, ComparisonLine{what, sumText(read.Components[key]), sumText(cluster.Components[key])})
	}
	return lines
}

func sumText(n *big.Int) string {
	if n == nil {
		return "0"
	}
	return n.String()
}

// showComparison writes both sides, and the verdict.
func (p *Program) showComparison(c *Comparison) error {
	if _, err := fmt.Fprintln(p.Stdout); err != nil {
		return err
	}
	t := newTable("SUM", ">COUNTED", ">READ", ">IN THE CLUSTER")
	for i, l := range c.Lines {
		counted := "-"
		if i == 0 && c.Counted != nil {
			counted = strconv.FormatInt(*c.Counted, 10)
		}
		t.addRow(l.What, counted, l.Read, l.Cluster)
	}
	if err := p.printTable(t); err != nil {
		return err
	}
	if c.Others > 0 {
		p.say("%d of the records are shown as another source has them, which takes precedence.", c.Others)
	}
	if c.Uncounted != "" {
		p.say("Whether these are all records is unknown: %s", c.Uncounted)
	}
	if c.Equal {
		p.say("Counts and sums are equal on both sides.")
	}
	return nil
}
