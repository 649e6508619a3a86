package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
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

	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/recordfile"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var seeds = flag.Uint64("seeds", 2, "random histories of TestRun_CutOffAnywhere_LosesNoRecord")

// cluster answers as a daemon does: it has rows, and removes and restores them.
type cluster struct {
	t        *testing.T
	rows     map[string]archived.Row            // with their details, by id
	archives map[string]archived.Archive        // by name
	gone     map[string]map[string]archived.Row // rows by archive
	shown    []string                           // ids, in the order in which they came
	seq      uint64
}

func newCluster(t *testing.T) *cluster {
	return &cluster{t: t, rows: map[string]archived.Row{}, archives: map[string]archived.Archive{}, gone: map[string]map[string]archived.Row{}}
}

// put stores a record that stopped then.
func (c *cluster) put(id string, stop time.Time, cores int64) {
	c.seq++
	at := record.Time(stop.UnixMicro())
	c.rows[id] = archived.Row{
		Record: record.Record{
			ID: id, Start: at - 3600*record.Second, Stop: at, Submit: record.None, Meta: record.Meta{{Key: "group_id", Values: []string{"atlas"}}},
			Components: []record.Component{{Name: "Cores", Amount: cores}},
		},
		Origin: record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}, Rank: record.RankScheduler,
		Version: record.Version{Ended: true, Observed: int64(c.seq)}, Stop: record.None, Seq: c.seq, Received: at, Changed: at,
	}
}

// between are the rows of a period, in their order.
func (c *cluster) between(from, to time.Time) (list []archived.Row) {
	for _, r := range c.rows {
		if stop := r.ShownStop().Std(); !stop.Before(from) && stop.Before(to) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b archived.Row) int {
		return cmp.Or(cmp.Compare(a.ShownStop(), b.ShownStop()), cmp.Compare(a.Seq, b.Seq))
	})
	return list
}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, restores := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/archives/"), ":restore")
	_, shows := strings.CutSuffix(r.URL.Path, ":show")
	var out any
	switch {
	case r.URL.Path == "/v1/status":
		out = v1.Status{Cluster: "c1"}
	case r.URL.Path == "/v1/records":
		out = c.changed(r)
	case r.URL.Path == "/v1/archives":
		list := slices.Collect(maps.Values(c.archives))
		slices.SortFunc(list, func(a, b archived.Archive) int { return strings.Compare(a.Name, b.Name) })
		out = map[string]any{"archives": list}
	case r.URL.Path == "/v1/archives/rows":
		c.stream(w, r)
		return
	case shows:
		_, err := archived.ReadStream(r.Body, func(row archived.Row, _ []byte) error {
			c.shown = append(c.shown, row.Record.ID)
			return nil
		})
		if out = (archived.Restored{}); err != nil {
			c.t.Error(err)
		}
	case restores:
		out = c.restore(name, r.Body)
	case r.Method == http.MethodPut:
		var s archived.Statement
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			c.t.Error(err)
		}
		if out = c.remove(name, &s); out == nil {
			w.WriteHeader(http.StatusConflict)
			out = map[string]string{"detail": "the rows in the store are others"}
		}
	case r.Method == http.MethodDelete:
		out = archived.Restored{Left: uint64(len(c.gone[name]))}
		delete(c.archives, name)
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		c.t.Error(err)
	}
}

func moment(t *testing.T, text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Error(err)
	}
	return at
}

func (c *cluster) changed(r *http.Request) (page v1.RecordPage) {
	q := r.URL.Query()
	after, err := strconv.ParseUint(cmp.Or(q.Get("after"), "0"), 10, 64)
	if err != nil {
		c.t.Error(err)
	}
	for _, row := range c.between(moment(c.t, q.Get("stop_time[gte]")), moment(c.t, q.Get("stop_time[lt]"))) {
		if row.Seq > after {
			page.Records = append(page.Records, v1.FullRecord{RecordID: row.Record.ID})
		}
	}
	return page
}

func (c *cluster) stream(w io.Writer, r *http.Request) {
	var b []byte
	var sum archived.Sum
	for _, row := range c.between(moment(c.t, r.URL.Query().Get("from")), moment(c.t, r.URL.Query().Get("to"))) {
		bytes := row.Append(nil)
		sum.Add(bytes)
		b = archived.AppendPart(b, bytes)
	}
	_, _ = w.Write(archived.AppendSeal(b, archived.Seal{Sum: sum, UpTo: c.seq})) // the reader may have left
}

func (c *cluster) remove(name string, s *archived.Statement) any {
	if _, again := c.archives[name]; !again {
		var sum archived.Sum
		list := c.between(s.From, s.To)
		for i := range list {
			sum.Add(list[i].Append(nil))
		}
		if sum.Count != s.Count || sum.Digest() != s.Digest {
			return nil
		}
		c.gone[name] = map[string]archived.Row{}
		for _, r := range list {
			c.gone[name][r.Record.ID] = r
			delete(c.rows, r.Record.ID)
		}
	}
	c.archives[name] = archived.Archive{Name: name, Statement: *s, State: "archived", Removed: s.Count}
	return c.archives[name]
}

func (c *cluster) restore(name string, body io.Reader) any {
	var n uint64
	_, err := archived.ReadStream(body, func(r archived.Row, bytes []byte) error {
		old, there := c.gone[name][r.Record.ID]
		if there && string(old.Append(nil)) != string(bytes) {
			return fmt.Errorf("%s is restored differently", r.Record.ID)
		}
		if there {
			c.rows[r.Record.ID] = r
			delete(c.gone[name], r.Record.ID)
			n++
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
	return archived.Restored{Restored: n}
}

// site is an action and the cluster on which it works.
type site struct {
	*cluster

	action action
	dir    string
	fence  uint64
	now    time.Time
}

func newSite(t *testing.T, change func(*config)) *site {
	s := &site{cluster: newCluster(t), dir: t.TempDir(), now: time.Date(2024, 6, 10, 0, 0, 0, 0, time.UTC)}
	s.action.config = config{
		settings: settings{WriteAfter: 7 * 24 * time.Hour, RemoveMonths: 2}, first: monthOf(time.Unix(0, 0)),
		schema: recordfile.Bursar, files: filestore.Directory(s.dir),
	}
	if change != nil {
		change(&s.action.config)
	}
	return s
}

func (s *site) plan(arguments map[string]string) (sdk.Plan, error) {
	return s.action.Plan(s.t.Context(), sdk.PlanStart{Now: s.now, Arguments: arguments}, sdk.NewData(s))
}

// do does an effect.
func (s *site) do(ctx context.Context, e sdk.Effect) sdk.Result {
	s.fence++
	return s.action.Execute(ctx, sdk.Attempt{Effect: e, Fence: s.fence, Number: 1}, sdk.NewArchiveWorld(s))
}

// run plans and does everything, and says how each effect ended.
func (s *site) run(arguments map[string]string) (said []string) {
	s.t.Helper()
	p, err := s.plan(arguments)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range p.Effects {
		r := s.do(s.t.Context(), e)
		said = append(said, fmt.Sprintf("%s: %s: %s", e.Name, map[sdk.Outcome]string{sdk.Done: "done", sdk.Retry: "retry", sdk.Rejected: "rejected"}[r.Outcome], r.Message))
	}
	return said
}

func (s *site) files() []string {
	s.t.Helper()
	list, err := filestore.Directory(s.dir).List(s.t.Context(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *site) says(got []string, want ...string) {
	s.t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			s.t.Fatalf("%q, want %q", got, want)
		}
	}
}

func day(m time.Month, d int) time.Time { return time.Date(2024, m, d, 12, 0, 0, 123000, time.UTC) }

func TestRun_MonthsThatAreDue_AreWrittenThenRemovedThenRestored(t *testing.T) {
	s := newSite(t, nil)
	s.put("a", day(1, 3), 4)
	s.put("b", day(1, 31), 8)
	s.put("c", day(3, 1), 1)
	s.put("d", day(4, 30), 1)
	s.put("e", day(5, 30), 1) // ended eleven days ago
	s.put("f", day(6, 3), 1)
	before := maps.Clone(s.rows)
	s.says(s.run(nil), "write 2024-01: done: 2 records in year=2024/month=01/records-1-000000000001.parquet, ", "remove 2024-01: done: 2 records are in "+s.dir+" alone",
		"write 2024-03: done: 1 records", "remove 2024-03: done: 1", "write 2024-04: done: 1", "write 2024-05: done")
	if got := strings.Join(slices.Sorted(maps.Keys(s.rows)), ""); got != "def" {
		t.Error(got)
	}
	s.says(s.run(nil)) // all is as it should be
	s.put("late", day(1, 5), 2)
	s.put("d", day(4, 30), 2)
	s.says(s.run(nil), "write 2024-01-2: done: 1 records in year=2024/month=01/records-2-", "remove 2024-01-2: done",
		"write 2024-04: done", "tidy 2024-04: done: 2 files were removed")
	before["late"], before["d"] = s.gone["2024-01-2"]["late"], s.rows["d"]
	s.says(s.run(map[string]string{"verify": "all"}), "verify 2024-01: done: 2 records: the files, the manifest and the store agree", "verify 2024-01-2: done",
		"verify 2024-03: done", "verify 2024-04: done: 1 records: the files and the manifest agree", "verify 2024-05: done")
	s.says(s.run(map[string]string{"restore": "2024-01"}), "restore 2024-01: done: 2 records are restored", "restore 2024-01-2: done: 1 records are restored")
	s.says(s.run(map[string]string{"restore": "2024-03"}), "restore 2024-03: done: 1 records")
	for id, want := range before {
		if got := s.rows[id]; string(got.Append(nil)) != string(want.Append(nil)) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, err := s.plan(map[string]string{"restore": "2024-03"}); err == nil || !strings.Contains(err.Error(), "archive not found") {
		t.Error(err)
	}
}

func TestRun_MonthWithSupplementRestored_IsInOneFileAgain(t *testing.T) {
	s := newSite(t, nil)
	s.put("a", day(1, 3), 4)
	s.run(nil)
	s.put("late", day(1, 5), 2)
	s.says(s.run(nil), "write 2024-01-2: done", "remove 2024-01-2: done")
	s.put("later", day(1, 6), 2)
	s.says(s.run(nil), "write 2024-01-3: done", "remove 2024-01-3: done")
	s.put("last", day(1, 7), 2)
	s.says(s.run(nil), "write 2024-01-4: done", "remove 2024-01-4: done")
	s.says(s.run(map[string]string{"restore": "2024-01"}), "restore 2024-01: done", "restore 2024-01-2: done", "restore 2024-01-3: done", "restore 2024-01-4: done")
	for _, f := range s.files() { // as an interrupted tidying leaves them
		if strings.Contains(f, "-3-") {
			if err := filestore.Directory(s.dir).Remove(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.says(s.run(nil), "write 2024-01: done: 4 records", "tidy 2024-01: done: 2 files", "tidy 2024-01-2: done: 2 files", "tidy 2024-01-4: done: 2 files", "remove 2024-01: done: 4 records")
	if got := s.files(); len(got) != 2 {
		t.Error(got)
	}
	s.says(s.run(nil))
}

func TestRun_RemovalOrRestoreUnfinished_WritesNoSupplement(t *testing.T) {
	for _, state := range []string{"checking", "removing", "restoring"} {
		s := newSite(t, nil)
		s.put("a", day(1, 3), 4)
		s.run(nil)
		s.put("back", day(1, 4), 4)
		a := s.archives["2024-01"]
		a.State = state
		s.archives["2024-01"] = a
		p, err := s.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Effects {
			if strings.HasPrefix(e.Name, "write") {
				t.Errorf("%s: %s", state, e.Name)
			}
		}
	}
}

func TestRemove_WhatChangedOrIsDamaged_RemovesNothing(t *testing.T) {
	for want, harm := range map[string]func(s *site, parquet, manifest string){
		"the rows in the store are others": func(s *site, _, _ string) { s.put("x", day(1, 4), 1) },
		"bytes, want":                      func(s *site, parquet, _ string) { cut(s.t, parquet) },
		"has the sha256":                   func(s *site, parquet, _ string) { flip(s.t, parquet) },
		"no such file or directory":        func(s *site, parquet, _ string) { os.Remove(parquet) },
		"was not written":                  func(s *site, _, manifest string) { os.Remove(manifest) },
		"it is not a manifest":             func(s *site, _, manifest string) { cut(s.t, manifest) },
		"is not there; is it mounted?":     func(s *site, _, _ string) { os.RemoveAll(s.dir) },
		"is in elsewhere, and this action": func(s *site, _, _ string) {
			s.archives["2024-01"] = archived.Archive{Name: "2024-01", Statement: archived.Statement{Location: "elsewhere"}}
		},
	} {
		s := newSite(t, nil)
		s.put("a", day(1, 3), 4)
		p, err := s.plan(nil)
		if err != nil || len(p.Effects) != 2 {
			t.Fatal(p, err)
		}
		if r := s.do(t.Context(), p.Effects[0]); r.Outcome != sdk.Done {
			t.Fatal(r)
		}
		files := s.files()
		harm(s, filepath.Join(s.dir, files[1]), filepath.Join(s.dir, files[0]))
		r := s.do(t.Context(), p.Effects[1])
		if r.Outcome == sdk.Done || !strings.Contains(r.Message, want) || s.rows["a"].Record.ID == "" {
			t.Errorf("%+v, want %s", r, want)
		}
		if _, err := os.Stat(s.dir); err != nil || len(s.archives) > 0 {
			continue
		}
		said := s.run(nil) // the next run makes it good
		if len(s.rows) != 0 || !strings.Contains(strings.Join(said, "\n"), "remove 2024-01: done") {
			t.Errorf("%s: %q", want, said)
		}
	}
}

func cut(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, text[:len(text)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err == nil {
		text[len(text)/2] ^= 1
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerify_FilesThatDiffer_AreNamed(t *testing.T) {
	s := newSite(t, nil)
	s.put("a", day(1, 3), 4)
	s.put("b", day(4, 3), 4)
	s.run(nil)
	for _, file := range s.files() {
		if strings.HasSuffix(file, ".parquet") {
			flip(t, filepath.Join(s.dir, file))
		}
	}
	s.says(s.run(map[string]string{"verify": "all"}), "verify 2024-01: rejected: year=2024/month=01/records-1-000000000001.parquet has the sha256", "verify 2024-04: rejected")
	s.says(s.run(map[string]string{"restore": "2024-01"}), "restore 2024-01: rejected: nothing is restored: year=2024/month=01/records-1-")
	if len(s.rows) != 1 {
		t.Error(s.rows)
	}
}

func TestRead_ArchivesOfThisPlace_AreShownInOrderAndStay(t *testing.T) {
	s := newSite(t, nil)
	s.put("b", day(1, 4), 4)
	s.put("a", day(1, 3), 4)
	s.run(nil)
	read := map[string]string{"read": "2024-01,2024-02,2024-01-2"}
	s.says(s.run(read), "read 2024-01: done: 2 records were read")
	if fmt.Sprint(s.shown) != "[a b]" || len(s.gone["2024-01"]) != 2 || s.archives["2024-01"].State != "archived" {
		t.Errorf("%v, %+v", s.shown, s.archives)
	}
	other := s.archives["2024-01"]
	other.Name, other.Location = "2024-02", "s3://elsewhere"
	s.archives["2024-02"] = other
	s.says(s.run(read), "read 2024-01: done: 2 records were read")
	planned, err := s.plan(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{".parquet", ".json"} {
		for _, file := range s.files() {
			if path := filepath.Join(s.dir, file); strings.HasSuffix(file, suffix) {
				cut(t, path)
			}
		}
		s.shown = nil
		if got := s.do(t.Context(), planned.Effects[0]); got.Outcome != sdk.Rejected || len(s.shown) > 0 {
			t.Errorf("%+v, %v", got, s.shown)
		}
		if _, err := s.plan(read); err == nil || !strings.Contains(err.Error(), "archive 2024-01 in "+s.dir) || !strings.Contains(err.Error(), suffix) {
			t.Error(err)
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.plan(read); err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Error(err)
	}
}

func TestWrite_ForeignFile_IsLeftAlone(t *testing.T) {
	s := newSite(t, nil)
	s.put("a", day(1, 3), 4)
	path := filepath.Join(s.dir, "year=2024/month=01/records-1-000000000001.parquet")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	said := s.run(nil)
	if !strings.HasPrefix(said[0], "write 2024-01: rejected: year=2024/month=01/records-1-000000000001.parquet is in ") || len(s.rows) != 1 {
		t.Error(said)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPlan_ManifestOfAnotherCluster_IsAnError(t *testing.T) {
	s := newSite(t, func(c *config) { c.RemoveMonths = 0 })
	s.put("a", day(1, 3), 4)
	s.run(nil)
	manifest := filepath.Join(s.dir, s.files()[0])
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = os.WriteFile(manifest, []byte(strings.Replace(string(text), `"c1"`, `"c2"`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.plan(nil); err == nil || !strings.Contains(err.Error(), "is of the cluster c2, and this one is c1") {
		t.Error(err)
	}
}

func TestRun_AuditorsSchema_IsWrittenAndVerified(t *testing.T) {
	s := newSite(t, func(c *config) { c.RemoveMonths, c.schema = 0, recordfile.Auditor })
	s.put("a", day(1, 3), 4)
	s.put("b", day(4, 3), 4)
	s.says(s.run(nil), "write 2024-01: done", "write 2024-04: done")
	s.says(s.run(map[string]string{"verify": "2024-01"}), "verify 2024-01: done: 1 records")
	s.says(s.run(nil))
}

// memory is a store without a disk.
type memory map[string][]byte

func (m memory) String() string { return "memory" }

func (m memory) Put(_ context.Context, name string, write func(io.Writer) error, check func(*filestore.File) error) error {
	var b bytes.Buffer
	err := write(&b)
	if err == nil && check != nil {
		err = check(file(name, b.Bytes()))
	}
	if err == nil {
		m[name] = b.Bytes()
	}
	return err
}

func file(name string, text []byte) *filestore.File {
	return &filestore.File{ReaderAt: bytes.NewReader(text), Closer: io.NopCloser(nil), Name: name, Size: int64(len(text))}
}

func (m memory) Open(_ context.Context, name string) (*filestore.File, error) {
	text, there := m[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return file(name, text), nil
}

func (m memory) List(_ context.Context, folder string) (names []string, _ error) {
	for name := range m {
		if strings.HasPrefix(name, folder) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (m memory) Remove(_ context.Context, name string) error { delete(m, name); return nil }

// cutOff is a store whose calls fail, before or after they did something, as a killed process
// does.
type cutOff struct {
	filestore.Store

	rng *rand.Rand
	on  bool
}

var errKilled = errors.New("killed")

func (c *cutOff) Put(ctx context.Context, name string, write func(io.Writer) error, check func(*filestore.File) error) error {
	if c.on && c.rng.IntN(6) == 0 {
		return errKilled
	}
	err := c.Store.Put(ctx, name, write, check)
	if c.on && c.rng.IntN(6) == 0 {
		return errKilled
	}
	return err
}

func (c *cutOff) Remove(ctx context.Context, name string) error {
	if c.on && c.rng.IntN(3) == 0 {
		return errKilled
	}
	return c.Store.Remove(ctx, name)
}

// What is removed is in files that agree with the store, whatever fails, whatever comes late,
// and in whatever order effects of several runs are done.
func TestRun_CutOffAnywhere_LosesNoRecord(t *testing.T) {
	for seed := range *seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		var broken *cutOff
		s := newSite(t, func(c *config) { broken = &cutOff{memory{}, rng, true}; c.files = broken })
		var stale []sdk.Effect
		all := map[string]bool{}
		for round := range 12 {
			for range rng.IntN(6) {
				id := strconv.Itoa(rng.IntN(60))
				if gone := slices.ContainsFunc(slices.Collect(maps.Values(s.gone)), func(m map[string]archived.Row) bool { return m[id].Record.ID != "" }); !gone {
					s.put(id, day(time.Month(1+rng.IntN(5)), 1+rng.IntN(28)), rng.Int64N(1<<40))
					all[id] = true
				}
			}
			p, err := s.plan(nil)
			if err != nil {
				t.Fatal(err)
			}
			broken.on = round < 11
			if rng.IntN(3) == 0 && len(stale) > 0 {
				s.do(t.Context(), stale[rng.IntN(len(stale))])
			}
			for _, e := range p.Effects {
				s.do(t.Context(), e)
				stale = append(stale, e)
			}
			s.sound(seed)
		}
		broken.on = false
		s.run(nil)
		left := 0
		for _, gone := range s.gone {
			left += len(gone)
		}
		if left+len(s.rows) != len(all) {
			t.Fatalf("seed %d: %d in files, %d in the store, want %d", seed, left, len(s.rows), len(all))
		}
	}
}

// sound checks that what was removed is in the files that the store names.
func (s *site) sound(seed uint64) {
	s.t.Helper()
	for name, a := range s.archives {
		n, err := parseName(name)
		if err != nil {
			s.t.Fatal(err)
		}
		e := &execution{config: &s.action.config, name: n, store: []archived.Archive{a}}
		m, err := e.archivedManifest(s.t.Context())
		if err != nil {
			s.t.Fatalf("seed %d: %s: %v", seed, name, err)
		}
		for r, err := range e.archiveRows(s.t.Context(), &m) {
			if want := s.gone[name][r.Record.ID]; err != nil || string(r.Append(nil)) != string(want.Append(nil)) {
				s.t.Fatalf("seed %d: %s: %+v, want %+v, %v", seed, name, r, want, err)
			}
		}
	}
}

func TestRun_ManyRecords_AreRestoredExactly(t *testing.T) {
	s := newSite(t, func(c *config) { c.files = memory{} })
	g := benchmark.Generator(1, 6000, benchmark.Slurm)
	g.Extended = true
	s.now = day(12, 31)
	for r := range g.All() {
		s.seq++
		s.rows[r.ID] = archived.Row{Record: r, Rank: record.RankImport, Stop: record.None, Received: r.Stop, Changed: r.Stop, Seq: s.seq, Version: record.Version{Ended: true, Observed: 1}}
	}
	before := maps.Clone(s.rows)
	s.run(nil)
	if len(s.rows) > 2000 || len(s.archives) < 9 {
		t.Fatal(len(s.rows), len(s.archives))
	}
	for _, said := range s.run(map[string]string{"restore": "all"}) {
		if !strings.Contains(said, ": done: ") {
			t.Error(said)
		}
	}
	for id, want := range before {
		if got := s.rows[id]; string(got.Append(nil)) != string(want.Append(nil)) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

func TestNames_OfFilesAndArchives_AreReadBack(t *testing.T) {
	for _, n := range []name{{monthOf(day(1, 1)), 1}, {monthOf(day(12, 31)), 17}} {
		got, err := parseName(n.String())
		if err != nil || got != n {
			t.Error(got, err)
		}
		for _, fence := range []uint64{1, 999999999999, 1 << 63} {
			e := edition{n, fence}
			for file, manifest := range map[string]bool{e.recordsFile(): false, e.manifestFile(): true} {
				if got, is, ok := parseFile(file); !ok || got != e || is != manifest {
					t.Error(file, got, is, ok)
				}
			}
		}
	}
	for _, bad := range []string{"", "2024", "2024-13", "2024-03-0", "2024-03-01", "2024-03-2 ", "../2024-03"} {
		if n, err := parseName(bad); err == nil && n.String() == bad {
			t.Error(bad)
		}
	}
	for _, bad := range []string{"a", "year=2024/month=03/records-1-1.parquet", "year=2024/month=03/records-01-000000000001.parquet", "year=2024/month=13/records-1-000000000001.parquet", "x/year=2024/month=03/records-1-000000000001.parquet"} {
		if e, _, ok := parseFile(bad); ok {
			t.Error(bad, e)
		}
	}
}
