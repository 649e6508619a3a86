package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// lake has the rows of archives, as an action would keep them in files. It implements
// api.ArchiveReader.
type lake struct {
	rows   map[string][][]byte // by archive, in their order
	read   []string            // the archives that were read, in order
	closed int
}

func (l *lake) Check(_ context.Context, archives []string) error {
	for _, name := range archives {
		if l.rows[name] == nil {
			return fmt.Errorf("archive %s: records.parquet: %w", name, fs.ErrNotExist)
		}
	}
	return nil
}

func (l *lake) Rows(ctx context.Context, archive string, yield func([]byte) error) error {
	if err := l.Check(ctx, []string{archive}); err != nil {
		return err
	}
	l.read = append(l.read, archive)
	for _, row := range l.rows[archive] {
		mine := bytes.Clone(row)
		if err := yield(mine); err != nil {
			return err
		}
		clear(mine) // it was only lent
	}
	return nil
}

func (l *lake) Close() error { l.closed++; return nil }

// archiveRows is a server over records of three months of which two are about to be archived.
type archiveRows struct {
	*rig
	*lake

	who access.Principal
}

func newArchiveRows(t *testing.T, n int, options ...func(*api.Options)) *archiveRows {
	a := &archiveRows{lake: &lake{rows: map[string][][]byte{}}, who: access.Daemon()}
	a.rig = newRig(t, func(o *api.Options, s *store.Options) {
		o.Who = func(*http.Request) access.Principal { return a.who }
		o.Archives = func(context.Context) (api.ArchiveReader, error) { return a.lake, nil }
		for _, option := range options {
			option(o)
		}
		s.SortBytes = 4 << 10
	})
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	month := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	var records []string
	for i := range n {
		// Some stop at one instant, so that only their order by number is left.
		stop := month.AddDate(0, rng.IntN(3), rng.IntN(28)).Add(time.Duration(rng.IntN(4)) * time.Hour)
		start := stop.Add(-time.Duration(rng.IntN(1000)) * time.Minute)
		records = append(records, fmt.Sprintf(`{"record_id":"r%03d","meta":{"group_id":["g%d"],"user_id":["u%d"],"site_id":["s"],"note":["n%d"]},"components":[{"name":"Cores","amount":%d,"scores":[]},{"name":"TotalCPU","amount":60,"scores":[]}],"start_time":%q,"stop_time":%q}`,
			rng.IntN(1e6)*1000+i, rng.IntN(3), i%5, rng.IntN(4), 1+rng.IntN(8), start.Format(time.RFC3339), stop.Format(time.RFC3339)))
	}
	records = append(records, `{"record_id":"runs","meta":{"group_id":["g0"]},"components":[],"start_time":"2024-01-03T00:00:00Z"}`)
	for part := range slices.Chunk(records, 50) {
		a.add(part...)
	}
	return a
}

// archive archives a month with all that the store has of it.
func (a *archiveRows) archive(name, from, to string) (s archived.Statement) {
	a.t.Helper()
	got := a.do("GET", "/v1/archives/rows?from="+from+"&to="+to, "")
	if got.status != http.StatusOK {
		a.t.Fatal(got)
	}
	var rows [][]byte
	seal, err := archived.ReadStream(strings.NewReader(got.body), func(_ archived.Row, b []byte) error {
		rows = append(rows, bytes.Clone(b))
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.rows[name] = rows
	s = archived.Statement{UpTo: seal.UpTo, Count: seal.Count, Digest: seal.Digest(), Location: "/srv/archive", Manifest: "_manifest.json", SHA256: strings.Repeat("0", 64), Keep: []string{"group_id", "pi", "project", "user_id"}}
	s.From, _ = time.Parse(time.RFC3339, from)
	s.To, _ = time.Parse(time.RFC3339, to)
	body, err := json.Marshal(s)
	if err != nil {
		a.t.Fatal(err)
	}
	if got := a.do("PUT", "/v1/archives/"+name, string(body)); got.status != http.StatusOK || !strings.Contains(got.body, `"state":"archived"`) {
		a.t.Fatal(got)
	}
	return s
}

const (
	jan2024, feb2024, mar2024 = "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"
)

// listQuestions are queries of lists of records.
func listQuestions() (list []string) {
	for _, order := range []string{"", "sort_by[desc]=stop_time", "sort_by[asc]=start_time", "sort_by[desc]=start_time", "sort_by[asc]=runtime", "sort_by[desc]=record_id"} {
		for _, filter := range []string{"", "meta[note][c][0]=n1", "meta[group_id][dnc][0]=g1&meta[note][c][0]=n2", "stop_time[gte]=2024-01-20T00:00:00Z&stop_time[lt]=2024-02-10T00:00:00Z",
			"component[Cores][gte]=5&runtime[lt]=20000", "limit=7", "meta[note][c][0]=n0&limit=9", "meta[note][c][0]=none"} {
			list = append(list, strings.Trim(order+"&"+filter, "&"))
		}
	}
	return list
}

func TestRecords_Archived_AreAsTheyWereInEveryOrder(t *testing.T) {
	a := newArchiveRows(t, racetest.Few(150))
	pi := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"note": {"n1", "n3"}})}
	questions := listQuestions()
	rand.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	questions = questions[:racetest.Few(len(questions))]
	ask := func(archived string) (out map[string]string) {
		out = map[string]string{}
		for _, who := range []access.Principal{access.Daemon(), pi} {
			a.who = who
			for _, q := range questions {
				for _, path := range []string{"/records?", "/v1/records?format=ndjson&", "/v1/records?format=csv&", "/v1/records?"} {
					got := a.do("GET", path+q+archived, "", "Prefer: handling=lenient")
					if got.status != http.StatusOK || got.err != nil {
						t.Fatalf("%s%s: %v", path, q, got)
					}
					out[who.Name+" "+path+q] = got.body
				}
			}
		}
		for path := "/v1/records?order=change&open=false&limit=11"; path != ""; {
			var page struct {
				Records []json.RawMessage
				Next    *string
			}
			a.get(path+archived, &page)
			out["pages"] += fmt.Sprintf("%s\n", page.Records)
			if path = ""; page.Next != nil {
				path = "/v1/records?order=change&open=false&limit=11&cursor=" + *page.Next
			}
		}
		a.who = access.Daemon()
		return out
	}
	before := ask("")
	a.archive("2024-01", jan2024, feb2024)
	a.add(`{"record_id":"late","meta":{"group_id":["g1"],"note":["n1"]},"components":[],"start_time":"2024-01-03T00:00:00Z","stop_time":"2024-01-04T02:00:00Z"}`)
	a.archive("2024-02", feb2024, mar2024)
	if got := a.do("DELETE", "/v1/records/late", ""); got.status != http.StatusNoContent {
		t.Fatal(got)
	}
	got := a.do("GET", "/v1/records", "")
	if got.header.Get("X-Bursar-Archived") != "2024-01,2024-02" || strings.Count(got.body, "record_id") > 100 {
		t.Error(got.header, got.body)
	}
	for q, want := range ask("&archived=true") {
		if before[q] != want {
			t.Errorf("%s: \n%s\nbefore:\n%s", q, want, before[q])
		}
	}
	if got := a.do("GET", "/v1/records?archived=true", ""); got.header.Get("X-Bursar-Archived") != "" {
		t.Error(got.header)
	}
	if a.closed == 0 {
		t.Error("no reader was closed")
	}
	a.who = access.Principal{Name: "mon", Rights: identity.Monitor, Rows: access.AllRows()}
	for _, path := range []string{"/records?archived=true", "/v1/records?archived=true"} {
		if got := a.do("GET", path, ""); got.status != http.StatusForbidden {
			t.Error(got)
		}
	}
}

func TestRecords_Supplement_IsReadWithItsMonth(t *testing.T) {
	a := newArchiveRows(t, 100)
	a.archive("2024-01", jan2024, feb2024)
	a.add(`{"record_id":"late","meta":{"note":["late"]},"components":[],"start_time":"2024-01-03T00:00:00Z","stop_time":"2024-01-15T02:00:00Z"}`)
	before := a.do("GET", "/records?archived=true", "").body
	a.archive("2024-01-2", jan2024, feb2024)
	a.read = nil
	if got := a.do("GET", "/records?archived=true", ""); got.body != before || !strings.Contains(got.body, `"note":["late"]`) {
		t.Error(got)
	}
	if !slices.Equal(a.read, []string{"2024-01", "2024-01-2"}) {
		t.Error(a.read)
	}
	a.read = nil
	if got := a.do("GET", "/records?archived=true&stop_time[gte]="+feb2024, ""); got.status != http.StatusOK || a.read != nil {
		t.Errorf("%v: %v was read", got, a.read)
	}
	if got := a.do("GET", "/v1/records?archived=yes", ""); got.status != http.StatusBadRequest {
		t.Error(got)
	}
}

func TestRecords_ArchiveMissingOrDamaged_IsAnErrorThatNamesIt(t *testing.T) {
	a := newArchiveRows(t, 200)
	a.archive("2024-01", jan2024, feb2024)
	a.archive("2024-02", feb2024, mar2024)
	whole := slices.Clone(a.rows["2024-02"])
	other, err := archived.Decode(whole[3])
	if err != nil {
		t.Fatal(err)
	}
	other.Record.Meta = record.Meta{{Key: "note", Values: []string{"of another"}}}
	for name, rows := range map[string][][]byte{
		"missing":      nil,
		"short":        whole[:len(whole)-1],
		"twice":        append(slices.Clone(whole), whole[len(whole)-1]),
		"out of order": append(slices.Clone(whole[1:]), whole[0]),
		"another":      append(slices.Concat(whole[:3], [][]byte{other.Append(nil)}), whole[4:]...),
		"cut off":      append(slices.Clone(whole[:5]), whole[5][:20]),
	} {
		a.rows["2024-02"] = rows
		for _, path := range []string{"/v1/records?archived=true&limit=10000", "/v1/records?format=ndjson&archived=true&sort_by[desc]=stop_time", "/records?archived=true&sort_by[asc]=start_time"} {
			got := a.call("GET", path, nil)
			if got.err == nil && (got.status < 500 || !strings.Contains(got.body, "archive 2024-02")) {
				t.Errorf("%s, %s: %v", name, path, got)
			}
			if strings.HasPrefix(path, "/v1") && got.err == nil && got.status != http.StatusServiceUnavailable {
				t.Errorf("%s, %s: %v", name, path, got)
			}
		}
	}
	a.rows["2024-02"] = whole
	if got := a.do("GET", "/records?archived=true", ""); got.status != http.StatusOK || strings.Count(got.body, "\n") != 201 {
		t.Error(got)
	}
}

// What has no archives in its time needs none, and takes no reader from others.
func TestRecords_ArchivesCannotBeRead_Is503WhereThereAreSome(t *testing.T) {
	for want, archives := range map[string]func(context.Context) (api.ArchiveReader, error){
		"this node cannot read archives": nil,
		"no room now": func(context.Context) (api.ArchiveReader, error) {
			return nil, fmt.Errorf("no room now: %w", store.ErrNoRoom)
		},
	} {
		a := newArchiveRows(t, 20, func(o *api.Options) { o.Archives = archives })
		for _, path := range []string{"/v1/records?format=ndjson&archived=true", "/records?archived=true"} {
			if got := a.do("GET", path, ""); got.status != http.StatusOK || strings.Count(got.body, "\n") != 21 {
				t.Error(got)
			}
		}
		a.archive("2024-01", jan2024, feb2024)
		for _, path := range []string{"/v1/records?archived=true", "/records?archived=true"} {
			if got := a.do("GET", path, ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, want) {
				t.Error(got)
			}
			later := path + "&stop_time[gte]=" + mar2024
			if got := a.do("GET", later, ""); got.status != http.StatusOK {
				t.Error(got)
			}
		}
	}
}

func TestArchives_RemovedAndRestored_AreListedAndAsBefore(t *testing.T) {
	a := newArchiveRows(t, 150)
	before := a.do("GET", "/v1/records?format=ndjson", "").body
	s := a.archive("2024-01", jan2024, feb2024)
	var list struct{ Archives []archived.Archive }
	a.get("/v1/archives", &list)
	if len(list.Archives) != 1 || list.Archives[0].Name != "2024-01" || list.Archives[0].Removed != s.Count || list.Archives[0].Digest != s.Digest || !slices.Equal(list.Archives[0].Kept, s.Keep) {
		t.Errorf("%+v", list)
	}
	for _, change := range []func(*archived.Statement){
		func(s *archived.Statement) { s.Count++ },
		func(s *archived.Statement) { s.UpTo = 1 << 40 },
		func(s *archived.Statement) { s.From, s.To = s.To, s.From },
	} {
		other := s
		other.From, other.To = s.To, s.To.AddDate(0, 1, 0)
		change(&other)
		body, err := json.Marshal(other)
		if got := a.do("PUT", "/v1/archives/2024-02", string(body)); err != nil || got.status != http.StatusConflict {
			t.Error(err, got)
		}
	}
	if got := a.call("PUT", "/v1/archives/2024-02", strings.NewReader("{")); got.status != http.StatusBadRequest {
		t.Error(got)
	}
	if got := a.do("GET", "/v1/archives/rows?from=x&to="+mar2024, ""); got.status != http.StatusBadRequest {
		t.Error(got)
	}
	var stream []byte
	var sum archived.Sum
	for _, row := range a.rows["2024-01"] {
		stream = archived.AppendPart(stream, row)
		sum.Add(row)
	}
	stream = archived.AppendSeal(stream, archived.Seal{Sum: sum})
	restore := func(name string, body []byte) answer {
		return a.call("POST", "/v1/archives/"+name+":restore", bytes.NewReader(body), "Content-Type: "+archived.StreamType)
	}
	if got := restore("2024-02", stream); got.status != http.StatusConflict {
		t.Error(got)
	}
	if got := restore("2024-01", stream[:len(stream)-1]); got.status != http.StatusBadRequest {
		t.Error(got)
	}
	if got := restore("2024-01", stream); got.status != http.StatusOK {
		t.Fatal(got)
	}
	for range 2 {
		if got := a.do("DELETE", "/v1/archives/2024-01", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"left":0`) {
			t.Error(got)
		}
	}
	a.get("/v1/archives", &list)
	if got := a.do("GET", "/v1/records?format=ndjson", "").body; got != before || len(list.Archives) > 0 {
		t.Errorf("%+v\n%s", list, got)
	}
	a.who = access.Principal{Name: "pi", Rights: identity.Read | identity.Operate, Rows: access.SomeRows(access.Grant{"group_id": {"g1"}})}
	for _, one := range []string{"GET /v1/archives/rows?from=" + jan2024 + "&to=" + mar2024, "PUT /v1/archives/x", "POST /v1/archives/x:restore", "DELETE /v1/archives/x"} {
		method, path, _ := strings.Cut(one, " ")
		if got := a.call(method, path, strings.NewReader("{}")); got.status != http.StatusForbidden {
			t.Errorf("%s: %v", one, got)
		}
	}
}

var errLake = errors.New("the bucket is gone")

// goneLake fails when rows are read, and not before.
type goneLake struct{ *lake }

func (goneLake) Rows(context.Context, string, func([]byte) error) error { return errLake }

func TestRecords_BucketGoneInTheMiddle_IsAnErrorOrABrokenAnswer(t *testing.T) {
	a := newArchiveRows(t, 100)
	a.archive("2024-01", jan2024, feb2024)
	rows := a.lake
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		o.Reader = access.Reader{Source: a.node}
		o.Archives = func(context.Context) (api.ArchiveReader, error) { return goneLake{rows}, nil }
	})
	if got := rg.do("GET", "/v1/records?archived=true&format=ndjson", ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "archive 2024-01 in /srv/archive: the bucket is gone") {
		t.Error(got)
	}
}

func TestReports_JobOfArchivedMonth_IsCounted(t *testing.T) {
	a := newArchiveRows(t, 50)
	id := a.ids("sort_by[asc]=stop_time&limit=1")[0]
	report := func() string { return a.do("GET", "/v1/reports/job?format=csv&job="+id, "").body }
	if before := report(); !strings.Contains(before, id+","+view.StateCounted+",") {
		t.Fatal(before)
	}
	a.archive("2024-01", jan2024, feb2024)
	a.rows["2024-01"] = nil // its files are not looked at
	if after := report(); !strings.Contains(after, id+`,"`+view.StateArchived+`",`) {
		t.Errorf("%s", after)
	}
}

func TestReports_JobsOfArchivedMonths_AreListedOrSaidToBeMissing(t *testing.T) {
	a := newArchiveRows(t, 150)
	made := regexp.MustCompile(`"made": *"[^"]*"`)
	report := func(path string) string {
		return made.ReplaceAllString(a.do("GET", path, "").body, "")
	}
	const statement, efficiency = "/v1/reports/statement?of=group_id=g1&period=2024-01&format=json", "/v1/reports/efficiency?period=2024-01&format=json"
	before := []string{report(statement), report(efficiency)}
	a.archive("2024-01", jan2024, feb2024)
	for i, path := range []string{statement, efficiency} {
		if got := report(path); got != before[i] || !strings.Contains(got, `"r`) {
			t.Errorf("%s: before\n%s\nafter\n%s", path, before[i], got)
		}
	}
	a.rows["2024-01"] = nil
	for _, path := range []string{statement, efficiency} {
		if got := report(path); !strings.Contains(got, "Jobs of archived months are in no list of jobs: ") || !strings.Contains(got, "archive 2024-01") {
			t.Errorf("%s: %s", path, got)
		}
	}
}
