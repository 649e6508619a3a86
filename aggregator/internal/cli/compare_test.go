package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// otherSide is an AUDITOR that is compared, or another bursar.
type otherSide struct {
	*apitest.World

	auditor bool   // it has no /v1
	odd     string // is behind each answer with records that ended
	fail    int    // from this question for records on it answers with 500; 0: never
	asked   int
}

func (o *otherSide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.auditor && strings.HasPrefix(r.URL.Path, "/v1/") {
		http.NotFound(w, r)
		return
	}
	records := strings.HasSuffix(r.URL.Path, "/records") && strings.Contains(r.URL.RawQuery, "stop_time")
	if records {
		if o.asked++; o.fail > 0 && o.asked >= o.fail {
			http.Error(w, "database is gone", http.StatusInternalServerError)
			return
		}
	}
	o.World.ServeHTTP(w, r)
	if records {
		_, _ = io.WriteString(w, o.odd)
	}
}

// twoSides are bursar and another system with planted differences.
type twoSides struct {
	t           *testing.T
	rng         *rand.Rand
	here, there []record.Record
	more        store.IngestCommand // what is here beside the records
	deleted     []string
	odd         string
	want        map[string]int // what is planted, as found has it
	equal       int
	n           int
	world       *apitest.World // bursar, when it is served
}

// run is a new run of some group, a day of February.
func (s *twoSides) run() record.Record {
	s.n++
	start := apitest.At("2026-02-02") + record.Time(s.rng.Int64N(int64(25*record.Day)))
	return record.Record{
		ID: fmt.Sprintf("nemo-%d", s.n), Start: start, Stop: start + record.Minute + record.Time(s.rng.Int64N(int64(record.Day))), Submit: record.None,
		Meta:       record.Meta{{Key: "group_id", Values: []string{"g" + strconv.Itoa(s.rng.IntN(3))}}, {Key: "site_id", Values: []string{"hpc"}}},
		Components: []record.Component{{Name: "Cores", Amount: 1 + s.rng.Int64N(64), Scores: []record.Score{{Name: "HS", Value: 10.5}}}, {Name: "TotalCPU", Amount: 77, Kind: record.Total}},
	}
}

func (s *twoSides) plant(kind, cause, id, detail string) { s.want[found(kind, cause, id, detail)]++ }

func found(kind, cause, id, detail string) string {
	return strings.Join([]string{kind, cause, id, detail}, " | ")
}

// bothBut adds a run that differs there.
func (s *twoSides) bothBut(cause, detail string, change func(there *record.Record)) {
	r := s.run()
	s.here = append(s.here, r)
	r.Components = slices.Clone(r.Components)
	change(&r)
	s.there = append(s.there, r)
	if detail == "" {
		s.equal++
		return
	}
	s.plant("different", cause, r.ID, detail)
}

// differences are the kinds of what is planted.
func (s *twoSides) differences() []func() {
	noon := record.FromStd(apitest.Noon())
	onlyThere := func(cause, detail string) record.Record {
		r := s.run()
		s.there = append(s.there, r)
		s.plant("missing here", cause, r.ID, detail)
		return r
	}
	onlyHere := func(cause string, change func(*record.Record)) {
		r := s.run()
		change(&r)
		s.here = append(s.here, r)
		s.plant("missing there", cause, r.ID, "")
	}
	later := func(r record.Record, by string) record.Record {
		r.Start, r.Stop = r.Stop+record.Hour, r.Stop+2*record.Hour
		switch by {
		case "-", "#":
			r.ID += "-" + strconv.FormatInt(int64(r.Start/record.Second), 10)
		case "@":
			r.ID += "@" + strconv.FormatInt(int64(r.Start)/1000, 10)
		}
		return r
	}
	asTwo := func(sep string) {
		r := s.run()
		if sep == "#" { // as HTCondor has it
			r.ID += "#7.0#1772000000"
		}
		s.here, s.there, s.equal = append(s.here, r), append(s.there, r), s.equal+1
		second := later(r, sep)
		s.here = append(s.here, second)
		s.plant("missing there", "another run of the job", second.ID, "")
	}
	return []func(){
		func() { s.bothBut("", "", func(*record.Record) {}) },
		func() { s.bothBut("", "", func(r *record.Record) { r.Start += 300 }) }, // less than a millisecond
		func() { onlyThere("", "") },
		func() { onlyHere("", func(*record.Record) {}) },
		func() { s.deleted = append(s.deleted, onlyThere("deleted here", "").ID) },
		func() {
			r := onlyThere("withdrawn here", "by head1/slurm/nemo")
			s.more.Writes = append(s.more.Writes, record.Write{Op: record.OpWithdraw, ID: r.ID, Origin: apitest.Nemo(), Rank: record.RankScheduler, Stop: record.None, Version: record.Version{Ended: true, Observed: int64(noon)}})
		},
		func() {
			r := onlyThere("quarantined here", "no Cores")
			s.more.Quarantine = append(s.more.Quarantine, store.Quarantined{Source: apitest.Nemo(), ID: "job " + r.ID, RecordID: r.ID, Reason: "mapping", Message: "no Cores"})
		},
		func() { asTwo("-") },
		func() { asTwo([]string{"@", "#"}[s.rng.IntN(2)]) },
		func() { // there the last run has the id of the job, and here the first
			r := s.run()
			second := later(r, "-")
			s.here = append(s.here, r, second)
			s.plant("missing there", "another run of the job", r.ID, "")
			second.ID = r.ID
			s.there, s.equal = append(s.there, second), s.equal+1
		},
		func() {
			r := s.run()
			s.here = append(s.here, r)
			other := later(r, "-")
			other.ID = r.ID
			s.there = append(s.there, other)
			s.plant("different", "another run of the job", r.ID, "start "+other.Start.String()+" → "+r.Start.String()+"; stop "+other.Stop.String()+" → "+r.Stop.String())
		},
		func() { onlyHere("still running here", func(r *record.Record) { r.Stop = record.None }) },
		func() {
			onlyHere("stopped in the last 10 minutes", func(r *record.Record) { r.Stop = noon - record.Minute })
		},
		func() {
			onlyThere("still running there", "")
			s.there[len(s.there)-1].Stop = record.None
		},
		func() {
			onlyThere("stopped in the last 10 minutes", "")
			s.there[len(s.there)-1].Stop = noon - 3*record.Minute
		},
		func() {
			r := s.run()
			there := r
			there.Stop = record.None
			s.here, s.there = append(s.here, r), append(s.there, there)
			s.plant("different", "still running there", r.ID, "stop – → "+r.Stop.String())
		},
		func() {
			r := s.run()
			here := r
			here.Stop = record.None
			s.here, s.there = append(s.here, here), append(s.there, r)
			s.plant("different", "still running here", r.ID, "stop "+r.Stop.String()+" → –")
		},
		func() {
			s.bothBut("", "Cores 1000 × HS 10.5 → "+strconv.FormatInt(s.nextCores(), 10)+" × HS 10.5", func(r *record.Record) { r.Components[0].Amount = 1000 })
		},
		func() {
			s.bothBut("", "TotalCPU – → 77 in total", func(r *record.Record) { r.Components = r.Components[:1] })
		},
		func() {
			s.bothBut("", "meta.group_id a,b → "+s.nextGroup()+"; meta.site_id – → hpc", func(r *record.Record) { r.Meta = record.Meta{{Key: "group_id", Values: []string{"a", "b"}}} })
		},
		func() {
			s.n++
			id := fmt.Sprintf("nemo-%d", s.n)
			s.odd += fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[{"name":"","amount":1,"scores":[]}],"start_time":"2026-02-05T00:00:00Z","stop_time":"2026-02-06T00:00:00Z"}`+"\n", id)
			s.want["invalid there | not a valid record | "+id]++
		},
	}
}

// nextCores and nextGroup look at the run that comes next.
func (s *twoSides) nextCores() int64  { r := s.peek(); return r.Components[0].Amount }
func (s *twoSides) nextGroup() string { r := s.peek(); return r.Meta[0].Values[0] }

// peek is the next run, which comes again.
func (s *twoSides) peek() record.Record {
	seed := s.rng.Uint64()
	next := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
	s.rng = next()
	r := s.run()
	s.n, s.rng = s.n-1, next()
	return r
}

// serve makes both worlds.
func (s *twoSides) serve(auditor bool) (shell, *otherSide, string) {
	here, other := apitest.New(s.t), &otherSide{World: apitest.New(s.t), auditor: auditor, odd: s.odd}
	other.Options.Archives = func(context.Context) (api.ArchiveReader, error) { return archiveFiles(nil), nil }
	s.rng.Shuffle(len(s.here), func(i, j int) { s.here[i], s.here[j] = s.here[j], s.here[i] })
	s.rng.Shuffle(len(s.there), func(i, j int) { s.there[i], s.there[j] = s.there[j], s.there[i] })
	here.Collect(apitest.Nemo(), s.here, nil)
	gone := s.more.Writes
	var before []record.Record // what is taken back
	for _, r := range s.there {
		if slices.ContainsFunc(gone, func(w record.Write) bool { return w.ID == r.ID }) || slices.Contains(s.deleted, r.ID) {
			before = append(before, r)
		}
	}
	here.Collect(apitest.Nemo(), before, nil)
	for i := range gone {
		gone[i].Version.Observed++
	}
	here.Collect(apitest.Nemo(), nil, &s.more)
	if len(s.deleted) > 0 {
		here.Apply(&store.DeleteCommand{IDs: s.deleted, By: "anna", Now: record.FromStd(apitest.Noon())})
	}
	other.Post(s.there...)
	s.world = here
	return at(here.Serve()), other, apitest.Listen(s.t, other)
}

// comparing calls bursar compare auditor.
func (s shell) comparing(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir, err := plugins()
	if err != nil {
		t.Fatal(err)
	}
	return s.bursar(t.Context(), append([]string{"compare", "auditor", "-dev", "-plugin-dir", dir}, args...)...)
}

// differencesOf reads an answer in JSON: what differs, and how many are equal.
func differencesOf(t *testing.T, text string) (got map[string]int, d *v1.Document) {
	t.Helper()
	d = &v1.Document{}
	if err := json.Unmarshal([]byte(text), d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	got = map[string]int{}
	for _, row := range rowsOf(d, "records") {
		detail := row[4]
		if row[1] == "not a valid record" {
			got[strings.Join(row[:3], " | ")]++
			continue
		}
		got[found(row[0], row[1], row[2], detail)]++
	}
	return got, d
}

// rowsOf are the rows of a table as text.
func rowsOf(d *v1.Document, name string) (rows [][]string) {
	for _, table := range d.Tables {
		for _, row := range table.Rows {
			cells := make([]string, len(row))
			for i, c := range row {
				cells[i] = c.String()
			}
			if table.Name == name {
				rows = append(rows, cells)
			}
		}
	}
	return rows
}

func TestCompareAuditor_PlantedDifferences_AreFoundWithTheirCauses(t *testing.T) {
	for seed := range uint64(6) {
		s := &twoSides{t: t, rng: rand.New(rand.NewPCG(seed, 3)), want: map[string]int{}}
		var all []func()
		for _, plant := range s.differences() {
			for range s.rng.IntN(4) {
				all = append(all, plant)
			}
		}
		for range 40 {
			all = append(all, s.differences()[0])
		}
		s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, plant := range all {
			plant()
		}
		shell, _, address := s.serve(seed%2 == 0)
		code, out, errs := shell.comparing(t, address, "-format", "json", "-by", "group_id")
		got, d := differencesOf(t, out)
		if diff := cmp.Diff(s.want, got); diff != "" || code != map[bool]int{true: 2, false: 0}[len(s.want) > 0] {
			t.Fatalf("seed %d: %d %s\n(-want +got):\n%s", seed, code, errs, diff)
		}
		results := rowsOf(d, "results")
		if results[0][1] != strconv.Itoa(s.equal) || len(results) != 5 {
			t.Errorf("seed %d: %v, want %d equal", seed, results, s.equal)
		}
		s.checkSums(d)
	}
}

// checkSums compares the sums by day and group with those of the records.
func (s *twoSides) checkSums(d *v1.Document) {
	for name, of := range map[string]func(*record.Record) string{
		"days": func(r *record.Record) string {
			if r.Open() {
				return "running"
			}
			return r.Stop.Std().Format(time.DateOnly)
		},
		"by_group_id": func(r *record.Record) string { return v1.JoinList(r.Meta.Get("group_id")...) },
	} {
		want := map[string][]string{}
		sums := map[string]*[2][2]int64{}
		for side, list := range [][]record.Record{s.there, s.here} {
			for i := range list {
				r := &list[i]
				if sums[of(r)] == nil {
					sums[of(r)] = &[2][2]int64{}
				}
				sum := &sums[of(r)][side]
				if sum[0]++; !r.Open() {
					sum[1] += r.Components[0].Amount * int64(r.Stop-r.Start)
				}
			}
		}
		for value, sum := range sums {
			want[value] = []string{fmt.Sprint(sum[0][0]), fmt.Sprint(sum[1][0]), millionths(sum[0][1]), millionths(sum[1][1])}
		}
		got := map[string][]string{}
		for _, row := range rowsOf(d, name) {
			got[row[0]] = row[1:5]
			for i := range 2 { // unknown where all run
				if row[0] == "running" && row[3+i] == "" {
					got[row[0]][2+i] = "0"
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// millionths is a number of millionths as an exact decimal.
func millionths(n int64) string {
	text := fmt.Sprintf("%d.%06d", n/1e6, n%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// archiveFiles are the files of archives, by name. It implements [api.ArchiveReader].
type archiveFiles map[string][][]byte

// Check implements [api.ArchiveReader].
func (f archiveFiles) Check(_ context.Context, archives []string) error {
	for _, name := range archives {
		if _, ok := f[name]; !ok {
			return fmt.Errorf("archive %s: records.parquet: %w", name, fs.ErrNotExist)
		}
	}
	return nil
}

// Rows implements [api.ArchiveReader].
func (f archiveFiles) Rows(_ context.Context, archive string, yield func([]byte) error) error {
	for _, row := range f[archive] {
		if err := yield(bytes.Clone(row)); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [api.ArchiveReader].
func (archiveFiles) Close() error { return nil }

// archive takes the details of the records of a time out of the store of the server at an
// address, where the keys of keep stay.
func (f archiveFiles) archive(t *testing.T, address, name, from, to string, keep ...string) {
	t.Helper()
	get, err := http.Get(address + "/v1/archives/rows?from=" + from + "T00:00:00Z&to=" + to + "T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	defer get.Body.Close()
	rows := [][]byte{}
	seal, err := archived.ReadStream(get.Body, func(_ archived.Row, row []byte) error {
		rows = append(rows, bytes.Clone(row))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f[name] = rows
	body, err := json.Marshal(archived.Statement{
		From: apitest.At(from).Std(), To: apitest.At(to).Std(), UpTo: seal.UpTo, Count: seal.Count, Digest: seal.Digest(), Location: "/srv", Manifest: "_manifest.json",
		SHA256: strings.Repeat("0", 64), Keep: keep,
	})
	if err != nil {
		t.Fatal(err)
	}
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address+"/v1/archives/"+name, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(put)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
}

func TestCompareAuditor_Archived_IsACauseOrCompared(t *testing.T) {
	s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 1)), want: map[string]int{}}
	for range 5 {
		s.differences()[0]()
	}
	shell, _, address := s.serve(true)
	files := archiveFiles{}
	files.archive(t, shell.env["BURSAR_ADDR"], "2026-02", "2026-02-01", "2026-03-01", "group_id")
	code, out, errs := shell.comparing(t, address, "-format", "csv")
	if n := strings.Count(out, "missing here,archived here,nemo-"); code != 2 || n != 5 {
		t.Errorf("%d archived: %d %s%s", n, code, out, errs)
	}
	s.world.Options.Archives = func(context.Context) (api.ArchiveReader, error) { return files, nil }
	if code, out, errs := shell.comparing(t, address, "-archived", "-format", "csv"); code != 0 || !strings.Contains(out, "equal,5,5,5,") {
		t.Errorf("with archives: %d %s%s", code, out, errs)
	}
}

// unreadable are the files of an archive whose rows are not those that were archived.
type unreadable struct {
	archiveFiles

	missing error // of the files, when they are looked for
}

func (f unreadable) Check(context.Context, []string) error { return f.missing }

func (f unreadable) Rows(context.Context, string, func([]byte) error) error {
	return errors.New("the files differ from the manifest")
}

// Records that another bursar has archived are read from its files. Where it cannot read
// them they are missing, and named.
func TestAuditor_ArchivedAtAnotherBursar_IsReadOrNamed(t *testing.T) {
	const n = 400
	for what, c := range map[string]struct {
		files func(archiveFiles) api.ArchiveReader
		want  string // why the archive is left out; "": it is read
	}{
		"read":    {func(f archiveFiles) api.ArchiveReader { return f }, ""},
		"missing": {func(f archiveFiles) api.ArchiveReader { return unreadable{f, errors.New("file not found")} }, "file not found"},
		"damaged": {func(f archiveFiles) api.ArchiveReader { return unreadable{f, nil} }, "the files differ from the manifest"},
		"nowhere": {nil, "this node cannot read archives"},
	} {
		t.Run(what, func(t *testing.T) {
			s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 8)), want: map[string]int{}}
			for range n {
				s.differences()[0]()
			}
			early := 0 // the archive is of February
			for i := range n {
				if i%3 == 0 {
					for _, list := range [][]record.Record{s.here, s.there} {
						list[i].Start, list[i].Stop = list[i].Start-30*record.Day, list[i].Stop-30*record.Day
					}
				}
				if s.there[i].Stop < apitest.At("2026-02-01") {
					early++
				}
			}
			shell, other, address := s.serve(false)
			files := archiveFiles{}
			files.archive(t, apitest.Listen(t, other.World), "2026-02", "2026-02-01", "2026-03-01", "group_id")
			other.Options.Archives = nil
			if c.files != nil {
				other.Options.Archives = func(context.Context) (api.ArchiveReader, error) { return c.files(files), nil }
			}
			checkArchivedThere(t, shell, address, n, early, len(files["2026-02"]), c.want)
		})
	}
}

func checkArchivedThere(t *testing.T, here shell, address string, all, early, archived int, want string) {
	t.Helper()
	dir, err := plugins()
	if err != nil {
		t.Fatal(err)
	}
	to := aggregator(t)
	code, out, errs := to.bursar(t.Context(), "import", "-dev", "-plugin-dir", dir, "-format", "json", "auditor", address)
	result := importOf(t, out)
	if want == "" {
		if code != 0 || !strings.Contains(out, `"equal": true`) || !strings.Contains(out, fmt.Sprintf(`"counted": %d`, all)) || int(result.Records) != all {
			t.Errorf("import: %d %s%s", code, out, errs)
		}
		if code, out, errs := here.comparing(t, address, "-format", "csv"); code != 0 || !strings.Contains(out, fmt.Sprintf("equal,%d,%[1]d,%[1]d,", all)) {
			t.Errorf("compare: %d %s%s", code, out, errs)
		}
		return
	}
	// A stop may be later than February.
	named := fmt.Sprintf("archive 2026-02 of the server, from 2026-02-01 to 2026-03-01, is left out with %d records: ", archived)
	if code != 2 || !strings.Contains(out, named) || !strings.Contains(out, want) || !strings.Contains(out, `"equal": false`) || int(result.Records) != all-archived || int(result.Records) < early {
		t.Errorf("import: %d %s%s", code, out, errs)
	}
	code, out, errs = here.comparing(t, address, "-format", "csv")
	if code != 2 || !strings.Contains(out, named) || !strings.Contains(out, want) || !strings.Contains(out, "\ninvalid there,not a valid record,1\n") {
		t.Errorf("compare: %d %s%s", code, out, errs)
	}
}

func TestCompareAuditor_Window_HasWhatStopsInItOnEitherSide(t *testing.T) {
	s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 2)), want: map[string]int{}}
	at := func(there, here string) {
		r := s.run()
		r.Start = apitest.At("2026-02-09")
		if there != "" {
			r.Stop = apitest.At(there)
			s.there = append(s.there, r)
		}
		if here != "" {
			r.Stop = apitest.At(here)
			s.here = append(s.here, r)
		}
	}
	at("2026-02-10T12:00:00Z", "2026-02-10T12:00:00Z") // in it: equal
	at("2026-02-11", "2026-02-11")                     // its end is not in it
	at("2026-02-09T23:59:59Z", "2026-02-09T23:59:59Z")
	at("2026-02-12", "") // outside, and missing
	at("", "2026-02-12")
	at("2026-02-10T12:00:00Z", "2026-02-13") // on one side in it
	at("2026-02-13", "2026-02-10T13:00:00Z")
	at("2026-02-10T12:00:00Z", "2026-02-27") // far out of it
	shell, _, address := s.serve(true)
	code, out, errs := shell.comparing(t, address, "-window", "2026-02-10", "-format", "json")
	got, d := differencesOf(t, out)
	want := map[string]int{
		"different |  | nemo-6 | stop 2026-02-10T12:00:00Z → 2026-02-13T00:00:00Z":                                1,
		"different |  | nemo-7 | stop 2026-02-13T00:00:00Z → 2026-02-10T13:00:00Z":                                1,
		"missing here | here outside the window | nemo-8 | start 2026-02-09T00:00:00Z; stop 2026-02-27T00:00:00Z": 1,
	}
	if diff := cmp.Diff(want, got); code != 2 || diff != "" {
		t.Errorf("%d %s (-want +got):\n%s", code, errs, diff)
	}
	if days := rowsOf(d, "days"); len(days) != 1 || days[0][0] != "2026-02-10" || days[0][1] != "3" || days[0][2] != "2" {
		t.Errorf("%v", days)
	}
	if code, out, _ := shell.comparing(t, address, "-window", "2026-02-10", "-ignore", "stop", "-format", "csv"); code != 2 || strings.Contains(out, "nemo-6") {
		t.Error(code, out)
	}
}

func TestCompareAuditor_EqualOrEmpty_EndsWithZero(t *testing.T) {
	for _, n := range []int{0, 1, 30} {
		s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 4)), want: map[string]int{}}
		for range n {
			s.differences()[0]()
		}
		shell, _, address := s.serve(n == 30)
		file := filepath.Join(t.TempDir(), "out.html")
		code, out, errs := shell.comparing(t, address, "-o", file)
		text, err := os.ReadFile(file)
		if code != 0 || out != "" || err != nil || !bytes.Contains(text, []byte("<html")) || !bytes.Contains(text, []byte("missing here")) {
			t.Errorf("%d records: %d %s %s %v", n, code, out, errs, err)
		}
	}
}

func TestCompareAuditor_ManyOfACause_AreCountedAndTheFirstTenNamed(t *testing.T) {
	s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 5)), want: map[string]int{}}
	for range 300 {
		s.differences()[2]()
	}
	first := slices.SortedFunc(slices.Values(s.there), func(a, b record.Record) int { return int(a.Stop - b.Stop) })
	shell, _, address := s.serve(false)
	code, out, _ := shell.comparing(t, address, "-format", "json")
	got, d := differencesOf(t, out)
	want := map[string]int{}
	for _, r := range first[:10] {
		want[found("missing here", "", r.ID, "")]++
	}
	if causes := rowsOf(d, "causes"); code != 2 || !maps.Equal(want, got) || len(causes) != 1 || causes[0][2] != "300" {
		t.Errorf("%d %v %v, want %v", code, causes, got, want)
	}
}

func TestCompareAuditor_500InTheMiddle_FailsAndSaysWhere(t *testing.T) {
	for _, auditor := range []bool{false, true} {
		s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 6)), want: map[string]int{}}
		for range 2500 {
			s.differences()[0]()
		}
		shell, other, address := s.serve(auditor)
		other.fail = 2
		code, out, errs := shell.comparing(t, address)
		if strings.Contains(errs, "rpc error") {
			t.Error("gRPC's words around those of the plugin:", errs)
		}
		for _, want := range []string{address, "behind 2 500 records, at 2026-02-", "database is gone"} {
			if code != 1 || out != "" || !strings.Contains(errs, want) {
				t.Errorf("%q is missing: %d %s%s", want, code, out, errs)
			}
		}
	}
}

func TestCompareAuditor_Password_IsNotShown(t *testing.T) {
	s, _ := filled(t)
	_, out, errs := s.comparing(t, "postgres://reader:geheim@127.0.0.1:1/auditor?password=geheim2")
	if strings.Contains(out+errs, "geheim") || !strings.Contains(errs, "postgres://127.0.0.1:1/auditor") {
		t.Error(out, errs)
	}
}

func TestCompareCSV_PlantedDifferences_AreFoundWithTheirCauses(t *testing.T) {
	for seed := range uint64(10) {
		s := &twoSides{t: t, rng: rand.New(rand.NewPCG(seed, 7)), want: map[string]int{}}
		var rows []string
		line := func(r record.Record, amount string) {
			rows = append(rows, strings.TrimPrefix(r.ID, "nemo-")+",x,"+amount)
		}
		hours := func(r record.Record, digits int) string {
			return strconv.FormatFloat(float64(r.Components[0].Amount)*float64(r.Stop-r.Start)/3600e6, 'f', digits, 64)
		}
		here := func() record.Record {
			r := s.run()
			s.here = append(s.here, r)
			return r
		}
		equal := func() record.Record {
			r := here()
			line(r, hours(r, 1+s.rng.IntN(3)))
			s.equal++
			return r
		}
		kinds := []func(){
			func() { equal() },
			func() { s.plant("missing there", "", here().ID, "") },
			func() {
				r := here()
				line(r, "9999.5")
				s.plant("different", "", r.ID, "Cores 9999.5 → "+hours(r, 3))
			},
			func() { r := s.run(); line(r, "1"); s.plant("missing here", "", r.ID, "") },
			func() {
				r := equal()
				line(r, "77")
				s.plant("invalid there", "id given more than once; the first amount counts", r.ID, "77")
			},
			func() {
				r := here()
				s.here[len(s.here)-1].Stop = record.None
				line(r, "5")
				s.plant("different", "still running here", r.ID, "Cores 5 → –")
			},
			func() { here(); s.here[len(s.here)-1].Stop = record.None }, // a list has what ended
			func() {
				r := s.run()
				line(r, "5")
				s.there, s.deleted = append(s.there, r), append(s.deleted, r.ID)
				s.plant("missing here", "deleted here", r.ID, "")
			},
			func() {
				second := equal()
				second.ID += "-" + strconv.FormatInt(int64(second.Start/record.Second), 10)
				s.here = append(s.here, second)
				s.plant("missing there", "another run of the job", second.ID, "")
			},
			func() {
				bad := []string{`"a"b,1,2`, `"half,1,2`, "7", "8,x,much", "9,x,-1", ",x,1", "10,x,", "11,x,1e999", strings.Repeat("x", 200_000) + ",x,1"}
				rows = append(rows, "", bad[s.rng.IntN(len(bad))])
				s.want["bad lines"]++
			},
		}
		for times := make([]int, len(kinds)); slices.Max(times) < 9; { // ten of each are named
			i := s.rng.IntN(len(kinds))
			times[i]++
			kinds[i]()
		}
		file := write(t, t.TempDir(), "jobs.csv", "\ufeff\"Job\",user,amount in h\r\n"+strings.Join(rows, "\r\n")+"\n\n")
		equals := s.equal
		shell, _, _ := s.serve(true)
		code, out, errs := shell.bursar(t.Context(), "compare", "csv", file, "-id", "Job", "-amount", "amount in h", "-prefix", "nemo-", "-unit", "hour", "-by", "group_id", "-format", "json")
		all, d := differencesOf(t, out)
		got := map[string]int{}
		for text, n := range all {
			if cells := strings.Split(text, " | "); cells[0] == "different" && cells[1] == "" { // of which rounding shortens the text
				at := strings.Index(text, "→ ") + len("→ ")
				f, err := strconv.ParseFloat(text[at:], 64)
				if err != nil {
					t.Fatal(text)
				}
				text = text[:at] + strconv.FormatFloat(f, 'f', 3, 64)
			}
			got[text] += n
		}
		for _, row := range rowsOf(d, "causes") {
			if row[1] == "not a line of the list" {
				got["bad lines"], _ = strconv.Atoi(row[2])
			}
		}
		maps.DeleteFunc(got, func(text string, _ int) bool { return strings.Contains(text, "| line ") })
		if diff := cmp.Diff(s.want, got); diff != "" || code != 2 || rowsOf(d, "results")[0][1] != strconv.Itoa(equals) {
			t.Fatalf("seed %d: %d %s, %v, want %d equal (-want +got):\n%s", seed, code, errs, rowsOf(d, "results"), equals, diff)
		}
	}
}

func TestCompareCSV_WrongUse_SaysWhatIsRight(t *testing.T) {
	s, _ := filled(t)
	file := write(t, t.TempDir(), "jobs.csv", "job,hours\n1,2\n")
	for line, want := range map[string]string{
		file:                               `columns "id" and "amount" not found in the first line: it has job, hours; use -id and -amount`,
		file + " -unit day":                "use one of second, hour",
		file + " -window 2026-13":          "invalid window",
		file + " -o x.pdf":                 "use a file that ends in .html",
		"/nonexistent/jobs.csv":            "does not exist",
		"":                                 "accepts 1 arg",
		write(t, t.TempDir(), "empty", ""): "the first line: EOF",
	} {
		if code, out, errs := s.bursar(t.Context(), append([]string{"compare", "csv"}, strings.Fields(line)...)...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s%s", line, code, out, errs)
		}
	}
}

func TestCompareCSV_Stdin_IsCompared(t *testing.T) {
	s, _ := filled(t)
	s.stdin = "id,amount\nnemo-8,86400\n"
	if code, out, errs := s.bursar(t.Context(), "compare", "csv", "-", "-window", "2026-02-22"); code != 0 || !strings.Contains(out, "2026-02-22") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	golden(t, "compare.table", second(s.bursar(t.Context(), "compare", "csv", "-", "-by", "group_id,none")))
}

func second(_ int, out, _ string) string { return out }

// An id that a path of a URL may not carry, or that looks like something else, is compared
// as any other.
func TestCompareAuditor_OddIDs_AreLookedUp(t *testing.T) {
	s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 8)), want: map[string]int{}}
	for _, id := range []string{".", "..", "a/b", "/", "a?b=c", "a#b", "50%", "%2e", "ü ü", "+", "x:undelete", "a-1770000000", "-1770000000", "a@", "\x01", strings.Repeat("l", 200)} {
		for _, deleted := range []bool{false, true} {
			r := s.run()
			if r.ID = id; deleted {
				r.ID += "deleted"
				s.deleted = append(s.deleted, r.ID)
			}
			s.there = append(s.there, r)
		}
	}
	shell, _, address := s.serve(true)
	code, out, errs := shell.comparing(t, address, "-format", "json")
	_, d := differencesOf(t, out)
	want := [][]string{{"missing here", "", "16"}, {"missing here", "deleted here", "16"}}
	got := rowsOf(d, "causes")
	slices.SortFunc(got, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	if diff := cmp.Diff(want, got); code != 2 || diff != "" {
		t.Errorf("%d %s (-want +got):\n%s", code, errs, diff)
	}
}

// Sources send no ids of jobs that their configuration leaves out, but count them by day.
func TestCompareAuditor_MissingHereWithoutCause_TellsWhatFiltersLeftOut(t *testing.T) {
	for _, c := range []struct {
		explained bool
		from      string // of its day the sources of the world count what they left out
		want      string
	}{
		{false, "2026-02-20", "left out from 2026-02-20 to 2026-02-21, of which some may be missing here: head1/slurm/nemo 14"}, {true, "2026-02-20", ""}, {false, "2019-02-20", ""},
	} {
		s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 11)), want: map[string]int{}}
		for i := range 3 {
			day := apitest.At("2026-02-20") + record.Time(i)*record.Day
			f := wire.Frame{SourceType: apitest.Nemo().Type, SourceLabel: apitest.Nemo().Label, Kind: wire.KindCount, Count: wire.Count{From: day, To: day + record.Day, At: day + 2*record.Day, Counted: 7, Filtered: 7}}
			s.more.Facts = append(s.more.Facts, store.Fact{Kind: store.FactCount, Source: apitest.Nemo(), At: day, Data: wire.AppendFrame(nil, &f)})
		}
		for i := range 4 {
			r := s.run()
			r.Start = apitest.At(c.from) + record.Time(i)*6*record.Hour
			r.Stop = r.Start + 12*record.Hour
			if s.there = append(s.there, r); c.explained {
				s.deleted = append(s.deleted, r.ID)
			}
		}
		shell, _, address := s.serve(true)
		code, out, errs := shell.comparing(t, address, "-format", "json")
		_, d := differencesOf(t, out)
		notes := strings.Join(d.Notes, " ")
		if code != 2 || !strings.Contains(notes, c.want) || strings.Contains(notes, "left out") != (c.want != "") {
			t.Errorf("%+v: %d %s, notes %q", c, code, errs, notes)
		}
	}
}

// What both addresses have is compared once, and what the mapping leaves out is not missing
// here.
func TestCompareAuditor_TwiceAndByAMapping_ComparesEachOnce(t *testing.T) {
	s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 9)), want: map[string]int{}}
	left := map[bool]int{}
	for i := range 60 {
		r := s.run()
		out := r.Meta.Get("group_id")[0] == "g1"
		s.there = append(s.there, r)
		if !out || i%2 == 0 {
			s.here = append(s.here, r)
		}
		left[out && i%2 == 0]++
	}
	shell, _, address := s.serve(true)
	config := write(t, t.TempDir(), "agent.hcl", "source \"auditor\" \"site\" {\n  config { url = \"http://127.0.0.1:1\" }\n  record { when = job.meta.group_id[0] != \"g1\" }\n}\n")
	code, out, errs := shell.comparing(t, address, address, "-config", config, "-format", "json")
	_, d := differencesOf(t, out)
	want := [][]string{{"missing there", "left out by the mapping of -config", strconv.Itoa(left[true])}}
	equal := 0
	for _, r := range s.there {
		if r.Meta.Get("group_id")[0] != "g1" {
			equal++
		}
	}
	if diff := cmp.Diff(want, rowsOf(d, "causes")); code != 2 || diff != "" || rowsOf(d, "results")[0][1] != strconv.Itoa(equal) {
		t.Errorf("%d %s %v, want %d equal (-want +got):\n%s", code, errs, rowsOf(d, "results"), equal, diff)
	}
}

func TestCompareAuditor_Ignore_LeavesFieldsOut(t *testing.T) {
	s := &twoSides{t: t, rng: rand.New(rand.NewPCG(1, 10)), want: map[string]int{}}
	s.bothBut("", "x", func(r *record.Record) { r.Components[0].Amount = 1000 })
	s.bothBut("", "x", func(r *record.Record) { r.Meta = r.Meta[:1] })
	shell, _, address := s.serve(true)
	for ignore, want := range map[string]int{
		"": 2, "Cores": 2, "meta": 2, "meta.site_id": 2, "Cores,meta": 0, "Cores,meta.site_id": 0, "start,stop,Cores,TotalCPU,meta.site_id": 0, "Cores,meta.group_id": 2,
	} {
		if code, out, errs := shell.comparing(t, address, "-ignore", ignore, "-format", "csv"); code != want {
			t.Errorf("-ignore %q: %d, want %d: %s%s", ignore, code, want, out, errs)
		}
	}
}

func TestCompare_Completion_KnowsWindowsKeysAndFiles(t *testing.T) {
	s, _ := filled(t)
	for line, want := range map[string]string{
		"compare |": "auditor\t", "compare auditor -window |": "last-month\n", "compare csv -by us|": "user_id\n", "compare csv |": "csv\n:8\n", "compare csv -unit |": "hour\n",
	} {
		args := strings.Split("__complete "+strings.TrimSuffix(line, "|"), " ")
		if code, out, errs := s.bursar(t.Context(), args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d\n%s%s", line, code, out, errs)
		}
	}
}
