package accounting

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// october is what ClusterAccountant says of the month.
type october struct {
	Rejected [][2]any
	Oct      struct {
		Total         float64 `json:"total_su"`
		Contributions float64 `json:"total_contribution_units"`
		PI            map[string]struct {
			SU           float64  `json:"su"`
			Share        float64  `json:"share_pct"`
			Units        float64  `json:"contribution_units"`
			Contribution float64  `json:"contribution_pct"`
			Ratio        *float64 `json:"ratio_pct"`
			Shown        string   `json:"shown"`
		} `json:"pi"`
		Projects map[string]float64 `json:"su_by_project"`
		Groups   map[string]float64 `json:"su_by_group"`
		Owners   map[string]float64 `json:"su_by_owner"`
	} `json:"oct"`
}

func readOctober(t *testing.T) (o october) {
	t.Helper()
	text, err := os.ReadFile("testdata/gridengine/expected-october.json")
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// cell keeps the records of the fixture in a store, those that ClusterAccountant
// does not reject.
type cell struct{ *store.Store }

func (c cell) View() (*store.View, error) { return c.Store.View() }

func newCell(t *testing.T, rejected [][2]any) cell {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile("testdata/gridengine/accounting")
	if err != nil {
		t.Fatal(err)
	}
	rows := columns.NewBuilder()
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if slices.ContainsFunc(rejected, func(r [2]any) bool { return r[0] == float64(i+1) }) {
			continue
		}
		rows.Add(&columns.Row{Record: accounted(t, strings.Split(line, ":")), Rank: record.RankPush, Stop: record.None})
	}
	if rows.Len() != 20 {
		t.Fatalf("%d records", rows.Len())
	}
	if _, err := s.Apply(1, 1, store.Encode(&store.PostCommand{Rows: rows.Bytes(), Now: 1})); err != nil {
		t.Fatal(err)
	}
	return cell{s}
}

// accounted makes a record of the fields of a line of accounting(5).
func accounted(t *testing.T, f []string) record.Record {
	t.Helper()
	seconds := func(i int) int64 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil || v != math.Trunc(v) {
			t.Fatal(f[i], err)
		}
		return int64(v)
	}
	var meta record.Meta
	for key, value := range map[string]string{"host": f[1], "group_id": f[2], "user_id": f[3]} {
		meta = append(meta, record.MetaEntry{Key: key, Values: []string{value}})
	}
	return record.Record{
		ID: "sge-" + f[5] + "-" + f[35] + "-" + f[41], Submit: record.None, Meta: meta.Sorted(),
		Start: record.Time(seconds(9)) * record.Second, Stop: record.Time(seconds(10)) * record.Second,
		Components: []record.Component{{Name: "CPU", Kind: record.Total, Amount: seconds(36)}},
	}
}

// site is what tables.sql says. Contributions are from their dates on, or with early
// from before the month on.
func site(t *testing.T, early bool) DirectorySettings {
	t.Helper()
	s := DirectorySettings{Units: UnitRates{Seconds: []UnitRate{{Component: "CPU", Worth: One}}, Default: new(Decimal)}}
	*s.Units.Default = One // a host that no pattern matches has the factor 1
	for _, c := range [][3]string{{"kat", "^kat-", "1.0"}, {"geo", "^geo-[a-d]", "1.9"}, {"gpu", "^kat-gpu", "2.7"}, {"old", "^old-", "0.5"}} {
		s.Classes = append(s.Classes, Class{ID: c[0], Pattern: c[1], Factors: []Factor{{From: record.None, Factor: parsedDecimal(t, c[2])}}})
	}
	for id, name := range map[string]string{"bell": "Bell", "phys": "Physics", "sagan": "Sagan", "guests": "Guests", "turing": "Turing", "darwin": "Darwin"} {
		s.People = append(s.People, Person{ID: id, Name: name})
	}
	for _, p := range [][2]string{{"bellgrp", "bell"}, {"phys1", "phys"}, {"phys2", "phys"}, {"sagangrp", "sagan"}, {"guest", "guests"}, {"turing", "turing"}, {"darwin", "darwin"}} {
		s.Projects = append(s.Projects, project(p[0], p[1], p[0]))
	}
	yes := true
	s.Projects[4].States[0].Exempt = &yes
	for i, c := range [][6]string{
		{"2011-01-01", "bell", "bell", "12", "100", "1.0"}, {"2012-10-05", "phys", "phys", "12", "75", "1.9"}, {"2012-10-05", "phys", "sagan", "12", "25", "1.9"},
		{"2012-12-01", "darwin", "darwin", "8", "100", "1.9"}, {"2011-01-01", "guests", "guests", "8", "100", "1.0"},
	} {
		from := day(t, c[0])
		if early {
			from = day(t, "2012-01-01")
		}
		s.Contributions = append(s.Contributions, Contribution{
			ID: fmt.Sprint(i), By: c[1], Credit: c[2], Amount: parsedDecimal(t, c[3]), Split: parsedDecimal(t, c[4]), Factor: parsedDecimal(t, c[5]), From: from, To: record.None,
		})
	}
	return s
}

// book answers questions about the cell as the daemon does.
func (c cell) ask(t *testing.T, d *Directory) sums.AskFunc {
	t.Helper()
	keeper := sums.NewKeeper(sums.Options{Views: c}, slog.New(slog.DiscardHandler), nil)
	keeper.Set(sums.Settings{Classes: d.Classes()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- keeper.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	b := &usage.Derivation{Keys: d.Keys()}
	w, _ := d.Units()
	b.Weights = append(b.Weights, w)
	return func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		return b.Answer(ctx, keeper.Answer, q)
	}
}

// month is October 2012, all of a job charged to its end.
func month(t *testing.T) sums.Query {
	return sums.Query{Edges: []record.Time{day(t, "2012-10-01"), day(t, "2012-11-01")}, Credit: sums.AtStop, Now: day(t, "2013-01-01")}
}

// same compares a figure with one that was rounded to some digits.
func same(t *testing.T, what string, got *big.Rat, want float64, digits int) {
	t.Helper()
	if got == nil {
		got = new(big.Rat)
	}
	if g, w := got.FloatString(digits), strconv.FormatFloat(want, 'f', digits, 64); g != w {
		t.Errorf("%s is %s, want %s", what, g, w)
	}
}

func percent(a, b *big.Rat) *big.Rat {
	p := new(big.Rat).Quo(a, b)
	return p.Mul(p, big.NewRat(100, 1))
}

func TestTheOctoberOfClusterAccountantIsTheSameToTheDigit(t *testing.T) {
	want := readOctober(t)
	d := made(t, site(t, true))
	s, err := d.Subscription(t.Context(), newCell(t, want.Rejected).ask(t, d), month(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the total", s.Used, want.Oct.Total, 9)
	same(t, "all contributions", s.Contributed, want.Oct.Contributions, 9)
	same(t, "what nobody claims", s.Unclaimed, want.Oct.Groups["chem"], 4)
	delete(want.Oct.PI, "CAS") // has neither project nor contribution: nothing says that this is an investigator
	shown := map[Standing]string{Over: "Over", Under: "Under", Neither: "N/A", Exempt: "N/A"}
	for i := range s.Shares {
		sh := &s.Shares[i]
		w, ok := want.Oct.PI[sh.Name]
		if !ok {
			t.Errorf("%s is there", sh.PI)
		}
		delete(want.Oct.PI, sh.Name)
		same(t, sh.PI+": used", sh.Used, w.SU, 4)
		same(t, sh.PI+": share", percent(sh.Used, s.Used), w.Share, 4)
		same(t, sh.PI+": contributed", sh.Contributed, w.Units, 9)
		same(t, sh.PI+": part of the contributions", percent(sh.Contributed, s.Contributed), w.Contribution, 4)
		if (sh.Ratio == nil) != (w.Ratio == nil) {
			t.Errorf("%s: %v, want %v", sh.PI, sh.Ratio, w.Ratio)
		}
		word := shown[sh.State]
		if sh.Ratio != nil {
			same(t, sh.PI+": ratio", percent(sh.Ratio, big.NewRat(1, 1)), *w.Ratio, 4)
		}
		if sh.State == Both {
			word = percent(sh.Ratio, big.NewRat(1, 1)).FloatString(0) + "%"
		}
		if word != w.Shown {
			t.Errorf("%s: %s, want %s", sh.PI, word, w.Shown)
		}
	}
	if len(want.Oct.PI) > 0 {
		t.Errorf("missing: %v", want.Oct.PI)
	}
}

// TestAContributionCountsAsLongAsItIsThere is where bursar says something else than
// ClusterAccountant, which looks at no date: what Darwin contributes from December on
// is no part of October, and what Physics has contributed since the 5th is there for 27
// of 31 days.
func TestAContributionCountsAsLongAsItIsThere(t *testing.T) {
	d := made(t, site(t, false))
	s, err := d.Subscription(t.Context(), newCell(t, readOctober(t).Rejected).ask(t, d), month(t))
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]Standing{}
	for i := range s.Shares {
		states[s.Shares[i].PI] = s.Shares[i].State
		switch sh := &s.Shares[i]; sh.PI {
		case "darwin":
			same(t, "darwin", sh.Contributed, 0, 9)
		case "phys":
			if part := big.NewRat(1710*27, 31); sh.Contributed.Cmp(part) != 0 {
				t.Error(sh.Contributed, part)
			}
		}
	}
	if total := new(big.Rat).Add(big.NewRat(1200, 1), big.NewRat((1710+570)*27, 31)); s.Contributed.Cmp(total) != 0 {
		t.Error(s.Contributed, total)
	}
	want := map[string]Standing{"bell": Both, "phys": Both, "sagan": Both, "guests": Exempt, "turing": Over, "darwin": Neither}
	for pi, state := range want {
		if states[pi] != state {
			t.Errorf("%s is %s, want %s", pi, states[pi], state)
		}
	}
	q := month(t)
	q.Edges = []record.Time{day(t, "2012-12-01"), day(t, "2013-01-01")}
	s, err = d.Subscription(t.Context(), newCell(t, readOctober(t).Rejected).ask(t, d), q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Shares {
		if sh := &s.Shares[i]; sh.PI == "darwin" && (sh.State != Under || sh.Contributed.Cmp(big.NewRat(1520, 1)) != 0) {
			t.Errorf("in December an unused contribution is shown: %+v", sh)
		}
	}
}

func TestServiceUnitsByProjectGroupAndOwnerAreThoseOfClusterAccountant(t *testing.T) {
	want := readOctober(t)
	d := made(t, site(t, true))
	ask := newCell(t, want.Rejected).ask(t, d)
	want.Oct.Projects["-"] = want.Oct.Groups["chem"] // claimed by no project: a line of its own
	for by, table := range map[string]map[string]float64{"project": want.Oct.Projects, "group_id": want.Oct.Groups, "user_id": want.Oct.Owners} {
		q := month(t)
		q.By = []string{by}
		q.Weights = []string{ServiceUnitMeasure}
		a, err := ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for g := range a.Groups {
			name, used := a.Groups[g].Values[0], a.Worths[0].Sum[g]
			if a.Groups[g].Lacks[0] {
				name = "-"
			}
			if used.IsZero() {
				continue
			}
			same(t, by+" "+name, unitsOfSum(used), table[name], 4)
			delete(table, name)
		}
		if len(table) > 0 {
			t.Errorf("%s: %v is missing", by, table)
		}
	}
}

func TestWhatHasNoFactorIsInNoShare(t *testing.T) {
	set := site(t, true)
	set.Units.Default = nil
	d := made(t, set)
	s, err := d.Subscription(t.Context(), newCell(t, readOctober(t).Rejected).ask(t, d), month(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what has no factor", s.Lacking["CPU"], 14399, 9) // on mystery9
	if _, err := made(t, DirectorySettings{}).Subscription(t.Context(), nil, month(t)); err == nil || !strings.Contains(err.Error(), "service_units") {
		t.Error(err)
	}
}
