package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// oddShapes are lists of components: several of a name, of another kind, none, and more than a block
// has columns for.
func oddShapes(rng *rand.Rand) (shapes [][]record.Component) {
	names := []string{"Cores", "TotalCPU", "Memory", "MemoryUsed", "GPUs", "TotalGPU", "GPUMemory", "GPUMemoryUsed"}
	for n := range 20 {
		var cs []record.Component
		for k := range n % 5 / 4 * 40 {
			cs = append(cs, record.Component{Name: fmt.Sprint("more", k)})
		}
		for _, k := range rng.Perm(len(names))[:rng.IntN(len(names)+1)] {
			kind := record.Rate
			if (strings.HasPrefix(names[k], "Total")) != (rng.IntN(10) == 0) {
				kind = record.Total
			}
			for range 1 + rng.IntN(5)/4 {
				cs = append(cs, record.Component{Name: names[k], Kind: kind})
				kind = record.Total - kind
			}
		}
		shapes = append(shapes, cs)
	}
	return shapes
}

// oddRecords are runs and parts of runs that ended in February or March, or go on, with components
// of some shapes and values of every kind, among them a comment of every record's own.
func oddRecords(rng *rand.Rand, n int) (list []record.Record) {
	shapes := oddShapes(rng)
	for i := range n {
		stop := apitest.At("2026-02-01") + record.Time(rng.IntN(40*86400))*record.Second + record.Time(rng.IntN(1_000_000))
		r := record.Record{ID: fmt.Sprint("odd-", i), Stop: stop, Submit: record.None, State: []string{"", "COMPLETED", "FAILED"}[rng.IntN(3)]}
		r.Start = stop - record.Time(rng.IntN(1<<rng.IntN(40)))
		if rng.IntN(3) > 0 {
			r.Submit = r.Start - record.Time(rng.Int64N(1<<rng.IntN(38)))
		}
		switch rng.IntN(30) {
		case 0:
			r.Start, r.Submit = r.Stop+record.Second, r.Stop+2*record.Second
		case 1:
			r.Stop = record.None
		}
		value := func(key string, values ...string) {
			r.Meta = append(r.Meta, record.MetaEntry{Key: key, Values: values})
		}
		if rng.IntN(8) > 0 {
			value("comment", fmt.Sprint("c", i))
		}
		value("group_id", fmt.Sprint("g", rng.IntN(3)), "g0")
		if rng.IntN(7) == 0 {
			value(record.PartKey, fmt.Sprint("task ", i))
		}
		if rng.IntN(20) == 0 {
			value("state", "FAILED")
		}
		if rng.IntN(9) > 0 {
			value("user_id", string(rune('a'+rng.IntN(3))))
		}
		r.Components = slices.Clone(shapes[rng.IntN(len(shapes))])
		for k := range r.Components {
			r.Components[k].Amount = rng.Int64N(1 << rng.IntN(30))
		}
		list = append(list, r)
	}
	return list
}

// oddWorld has the records of which some got their stop later, in blocks, waiting and open.
func oddWorld(t *testing.T, rng *rand.Rand, list []record.Record) *apitest.World {
	w := apitest.New(t)
	for part := range slices.Chunk(list, 1700) {
		w.Post(part...)
	}
	for i := range list {
		if list[i].Stop == record.None && rng.IntN(2) == 0 {
			w.Apply(&store.PutStopCommand{ID: list[i].ID, Stop: apitest.At("2026-02-20") + record.Time(i)*record.Second, Now: record.FromStd(apitest.Noon())})
		}
	}
	return w
}

// slowRun has the figures of a run as exact numbers, by histogram; nil is not known.
func slowRun(row *columns.Row) (figures map[string]*big.Rat, used *big.Rat) {
	r := row.Shown()
	amount := func(name string, kind record.Kind) *big.Rat {
		i := slices.IndexFunc(r.Components, func(c record.Component) bool { return c.Name == name && c.Kind == kind })
		if i < 0 {
			return nil
		}
		return new(big.Rat).SetInt64(r.Components[i].Amount)
	}
	seconds := func(from, to record.Time) *big.Rat {
		if from == record.None || to < from {
			return nil
		}
		return big.NewRat(int64(to-from), int64(record.Second))
	}
	times := func(a, b *big.Rat) *big.Rat {
		if a == nil || b == nil {
			return nil
		}
		return new(big.Rat).Mul(a, b)
	}
	part := func(a, b *big.Rat) *big.Rat {
		if a == nil || b == nil || b.Sign() == 0 {
			return nil
		}
		return new(big.Rat).Quo(a, b)
	}
	size, wait, runtime := amount("Cores", record.Rate), seconds(r.Submit, r.Start), seconds(r.Start, r.Stop)
	figures = map[string]*big.Rat{
		"size": size, "wait": wait, "runtime": runtime, "expansion": nil, "cpu": part(amount("TotalCPU", record.Total), times(size, runtime)),
		"memory": part(amount("MemoryUsed", record.Rate), amount("Memory", record.Rate)),
		"gpus":   part(amount("TotalGPU", record.Total), times(amount("GPUs", record.Rate), runtime)), "gpu_memory": part(amount("GPUMemoryUsed", record.Rate), amount("GPUMemory", record.Rate)),
	}
	if wait != nil && runtime != nil {
		run := runtime
		if run.Cmp(big.NewRat(10, 1)) < 0 {
			run = big.NewRat(10, 1)
		}
		figures["expansion"] = part(new(big.Rat).Add(wait, run), run)
	}
	if used = times(size, runtime); used != nil {
		used.Quo(used, big.NewRat(3600, 1))
	}
	return figures, used
}

// slowHistogram is made of one row after the other.
type slowHistogram struct {
	records []int
	used    []*big.Rat
	sum     *big.Float
	unknown int
}

func (h *slowHistogram) addRow(from []json.Number, value, used *big.Rat) {
	if h.records == nil {
		h.records, h.used, h.sum = make([]int, len(from)), make([]*big.Rat, len(from)), new(big.Float).SetPrec(256)
		for i := range h.used {
			h.used[i] = new(big.Rat)
		}
	}
	if value == nil {
		h.unknown++
		return
	}
	bounds, nearest := make([]float64, len(from)), 0.0
	for i := range from {
		bounds[i], _ = from[i].Float64()
	}
	nearest, _ = value.Float64()
	bin := in(bounds, nearest)
	h.records[bin]++
	h.sum.Add(h.sum, new(big.Float).SetPrec(256).SetRat(value))
	if used != nil {
		h.used[bin].Add(h.used[bin], used)
	}
}

// compare reports what differs from an answer; of means quotients may be rounded.
func (h *slowHistogram) compare(got *v1.Histogram) string {
	known := int64(0)
	for i := range h.records {
		known += int64(h.records[i])
		if got.Records[i] != h.records[i] || got.CoreHours[i].String() != h.used[i].FloatString(3) {
			return fmt.Sprintf("bin %d: %d, %s core-hours; want %d, %s", i, got.Records[i], got.CoreHours[i], h.records[i], h.used[i].FloatString(3))
		}
	}
	if got.Unknown != h.unknown || (got.Mean == nil) != (known == 0) {
		return fmt.Sprintf("unknown %d, mean %v; want %d, %d known", got.Unknown, got.Mean, h.unknown, known)
	}
	if known == 0 {
		return ""
	}
	mean, _ := new(big.Float).Quo(h.sum, big.NewFloat(float64(known))).Float64()
	if is, err := got.Mean.Float64(); err != nil || max(is-mean, mean-is) > 1e-6+mean*1e-12 {
		return fmt.Sprintf("mean %s, want %s", *got.Mean, strconv.FormatFloat(mean, 'f', 9, 64))
	}
	return ""
}

func TestDistributions_RandomQuestions_CountWhatRowByRowCounts(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := oddWorld(t, rng, oddRecords(rng, 2*1700+100))
	names := access.NewPseudonyms([]byte("secret"), []string{"user_id"}, []string{"group_id"})
	reader := access.Reader{Source: w, Usages: w.Usages}
	reader.Pseudonyms = func(context.Context, *store.View) (*access.Pseudonyms, error) { return names, nil }
	w.Options.Reader, w.Options.Usage = reader, reader
	some := access.SomeRows(access.Grant{"user_id": {"a", "b"}, "group_id": {"g1"}}, access.Grant{"user_id": {"c"}})
	readers := []access.Principal{access.Daemon(), {Name: "some", Rights: identity.Read, Rows: some}, {Name: "agency", Rights: identity.Read, Rows: access.AllRows(), Pseudonyms: true}}
	wheres := []string{"user_id=a", "user_id=a,c", "user_id=", "user_id=,b", "group_id=g1", "group_id=g0,g2", "state=FAILED", "state=,COMPLETED", "comment=c7,c8,c9,c2000", "comment=", "comment=,c7,c9,c2000", "run_part="}
	for range racetest.Few(30) {
		who := readers[rng.IntN(len(readers))]
		query, having := url.Values{"window": {"2026-02"}}, map[string][]string{}
		for range rng.IntN(3) {
			key, values, _ := strings.Cut(wheres[rng.IntN(len(wheres))], "=")
			list := strings.Split(values, ",")
			for i := range list {
				if who.Pseudonyms && key == "user_id" {
					list[i] = names.Of(list[i])
				}
			}
			having[key] = list
			query.Set("where["+key+"]", strings.Join(list, ","))
		}
		slow := store.Query{Order: store.BySeq, Open: store.OnlyClosed}
		slow.Stop.GTE(int64(apitest.At("2026-02-01")))
		slow.Stop.LT(int64(apitest.At("2026-03-01")))
		if rng.IntN(3) == 0 {
			slow.Runtime.GTE(100)
			query.Set("runtime[gte]", "100")
		}
		checkDistributions(t, w, who, query, slow, having)
	}
}

// checkDistributions compares an answer with what the rows of slow say one by one.
func checkDistributions(t *testing.T, w *apitest.World, who access.Principal, query url.Values, slow store.Query, having map[string][]string) {
	t.Helper()
	ctx := access.With(t.Context(), who)
	var got v1.Distributions
	failed := w.Call(ctx, http.MethodGet, "/v1/distributions", query, nil, &got)
	view, err := w.Options.Reader.Read(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	runs, want := 0, make([]slowHistogram, len(got.Histograms))
	err = view.Query(ctx, slow, func(row *columns.Row) error {
		if row.Record.Meta.IsPart() {
			return nil
		}
		for key, values := range having {
			first := ""
			if list, _ := row.Record.Values(key); len(list) > 0 {
				first = list[0]
			}
			if !slices.Contains(values, first) {
				return nil
			}
		}
		runs++
		figures, used := slowRun(row)
		for i := range want {
			want[i].addRow(got.Histograms[i].From, figures[got.Histograms[i].Name], used)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed != nil { // an empty answer, or a key that is not shown
		if runs > 0 && !(who.Pseudonyms && strings.Contains(failed.Error(), "are not shown")) {
			t.Errorf("%s, %v: %v, want %d runs", who.Name, query, failed, runs)
		}
		return
	}
	if got.Records != runs {
		t.Errorf("%s, %v: %d runs, want %d", who.Name, query, got.Records, runs)
	}
	for i := range want {
		if runs == 0 {
			break
		}
		if differs := want[i].compare(&got.Histograms[i]); differs != "" {
			t.Errorf("%s, %v, %s: %s", who.Name, query, got.Histograms[i].Name, differs)
		}
	}
}

func TestDistributions_SameRecordsInAnyOrder_AreTheSameBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	list := oddRecords(rng, 3500)
	var first json.RawMessage
	for range 3 {
		w := apitest.New(t)
		for part := range slices.Chunk(list, 1700) {
			w.Post(part...)
		}
		var got json.RawMessage
		if err := w.Call(access.With(t.Context(), access.Daemon()), http.MethodGet, "/v1/distributions", url.Values{"window": {"2026-02"}}, nil, &got); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if string(got) != string(first) {
			t.Errorf("%s\n%s", got, first)
		}
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}
