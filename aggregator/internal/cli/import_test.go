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
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

const snapshots = "../../../plugins/source/ai4/testdata/snapshots"

// accountingFiles are files of Grid Engine.
const accountingFiles = "../../../plugins/source/gridengine/internal/accounting/testdata/accounting-*"

// plugins is a folder with the plugins that import, built once.
var plugins = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bursar-test-plugins-")
	if err != nil {
		return "", err
	}
	return dir, programtest.Build(dir, map[string]string{"bursar-source-ai4": "plugins/source/ai4", "bursar-source-gridengine": "plugins/source/gridengine", "bursar-source-auditor": "plugins/source/auditor", "bursar-source-replay": "plugins/source/replay"})
})

func TestMain(m *testing.M) {
	code := m.Run()
	for _, built := range []func() (string, error){plugins, programs} {
		if dir, _ := built(); dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// importing calls bursar import.
func (s shell) importing(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir, err := plugins()
	if err != nil {
		t.Fatal(err)
	}
	return s.bursar(t.Context(), append([]string{"import", "-dev", "-plugin-dir", dir}, args...)...)
}

// aggregator runs the daemon until the test ends.
func aggregator(t *testing.T) shell {
	t.Helper()
	s, _ := aggregatorWith(t, "")
	return s
}

// aggregatorWith has more blocks; address is its plain one.
func aggregatorWith(t *testing.T, blocks string) (s shell, address string) {
	t.Helper()
	dir := t.TempDir()
	at := porttest.Free(t)
	path := write(t, dir, "a.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api { listen = [%q] }\n}\n%s", at, blocks))
	log := &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-config", path}) }()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Error("exit code of the aggregator", code)
		}
	})
	log.await(t, "this node leads")
	return shell{env: map[string]string{"BURSAR_ADDR": "unix:" + filepath.Join(dir, "data", "api.sock")}}, "http://" + at
}

// client speaks with the aggregator of the shell over its unix socket.
func (s shell) client() *http.Client {
	path := strings.TrimPrefix(s.env["BURSAR_ADDR"], "unix:")
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return local.Dial(ctx, path) }}}
}

// imported is what bursar import -format json says.
type imported struct {
	Records     int64 `json:"records"`
	LeftOut     int64 `json:"left_out"`
	Skipped     int64 `json:"skipped"`
	Quarantined int64 `json:"quarantined"`
	Refused     int64 `json:"refused"`
	Withdrawn   int64 `json:"withdrawn"`
	Renamed     int64 `json:"renamed"`
	Committed   *struct {
		Pulled    int64 `json:"pulled"`
		Added     int64 `json:"added"`
		Unchanged int64 `json:"unchanged"`
		Withdrawn int64 `json:"withdrawn"`
	} `json:"committed"`
	Problems []struct {
		Run     string `json:"run"`
		Message string `json:"message"`
	} `json:"problems"`
}

func importOf(t *testing.T, text string) (out imported) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// count is how many records of the label the cluster shows.
func (s shell) count(t *testing.T, label string) int {
	t.Helper()
	code, out, errs := s.bursar(t.Context(), "records", "-limit", "-1", "-format", "csv")
	if code != 0 {
		t.Fatal(code, errs)
	}
	return strings.Count(out, "\n"+label+"-")
}

func TestAnImportBringsEveryRunOnceHoweverOftenItIsDone(t *testing.T) {
	s := aggregator(t)
	code, out, errs := s.importing(t, "-label", "cloud", "ai4", snapshots)
	if code != 0 {
		t.Fatal(code, out, errs)
	}
	if !strings.Contains(out, "new at the cluster  ") || strings.Contains(out, "known already") {
		t.Error(out)
	}
	all := s.count(t, "cloud")
	code, out, errs = s.importing(t, "-label", "cloud", "-format", "json", "ai4", snapshots)
	again := importOf(t, out)
	if code != 0 || again.Committed.Added != 0 || again.Committed.Unchanged != again.Records || again.Records != int64(all) || all != 11 || s.count(t, "cloud") != all {
		t.Error(code, out, errs, all)
	}
	code, out, _ = s.bursar(t.Context(), "usage", "-from", "2025-03-01", "-to", "2025-03-04", "-by", "namespace", "-component", "Cores", "-format", "csv")
	for _, want := range []string{",4,405.734444\n", ",3,279.95\n", ",4,1134.466667\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
	if code, out, _ = s.bursar(t.Context(), "agents"); code != 0 || !strings.Contains(out, "ai4/cloud") || !strings.Contains(out, "  import  ") {
		t.Error(code, out)
	}
	if code, out, _ = s.bursar(t.Context(), "gaps"); !strings.Contains(out, "no snapshot for 12h") {
		t.Error(code, out)
	}
}

// starts are the starts of the records, by id.
func (s shell) starts(t *testing.T) map[string]time.Time {
	t.Helper()
	resp, err := s.client().Get("http://localhost/records")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out := map[string]time.Time{}
	for lines := json.NewDecoder(resp.Body); ; {
		var r struct {
			ID    string    `json:"record_id"`
			Start time.Time `json:"start_time"`
		}
		err := lines.Decode(&r)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[r.ID] = r.Start
	}
}

// seed pushes frames as an import of the name does.
func (s shell) seed(t *testing.T, name string, frames []*wire.Frame) {
	t.Helper()
	post := func(path string, body []byte, into any) {
		resp, err := s.client().Post("http://localhost"+path, "application/octet-stream", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
	}
	var begun struct {
		Epoch    string `json:"epoch"`
		Observed int64  `json:"observed"`
	}
	post("/v1/imports/"+name, nil, &begun)
	b := frame.NewBuilder(1, frame.Digest{})
	for i, f := range frames {
		f.Version.Observed = begun.Observed + int64(i) + 1
		if err := b.Append(wire.AppendFrame(nil, f)); err != nil {
			t.Fatal(err)
		}
	}
	post("/v1/imports/"+name+"/"+begun.Epoch, b.Finish(), new(any))
}

// What an earlier import brought by other names, such as each start by its time, is taken
// back by the next one, and what another source has is used, whichever of the names it has.
func TestARunThatIsThereUnderAnotherIDIsImportedOnce(t *testing.T) {
	fresh := aggregator(t)
	if code, out, errs := fresh.importing(t, "-label", "cloud", "ai4", snapshots); code != 0 {
		t.Fatal(code, out, errs)
	}
	want := fresh.starts(t)
	timed := func(id string, start time.Time) string {
		plain, _, _ := strings.Cut(id, "@")
		return fmt.Sprintf("%s@%d", plain, start.UnixMilli())
	}
	later := 0
	var old, other []*wire.Frame
	for id, start := range want {
		if strings.Contains(id, "@") {
			later++
		}
		body := record.Record{Meta: record.Meta{}, Start: record.FromStd(start), Stop: record.FromStd(start.Add(time.Hour)), Submit: record.None}
		for _, list := range []*[]*wire.Frame{&old, &other} {
			f := &wire.Frame{Kind: wire.KindRecord, SourceType: "ai4", SourceLabel: "cloud", Rank: record.RankImport, ID: timed(id, start), Record: body}
			f.Record.ID, f.Version.Ended = f.ID, true
			*list = append(*list, f)
		}
	}
	if len(want) != 11 || later != 1 {
		t.Fatal(want)
	}
	for name, seeded := range map[string]struct {
		as     string
		frames []*wire.Frame
		want   int // records by the ids of want
		renew  int64
	}{
		"by an earlier import": {"import", old, 11, 10},
		"by another source":    {"head1", other, 1, 0},
	} {
		s := aggregator(t)
		s.seed(t, seeded.as, seeded.frames)
		for n, renamed := range []int64{seeded.renew, 0} {
			code, out, errs := s.importing(t, "-label", "cloud", "-format", "json", "ai4", snapshots)
			if got := importOf(t, out); code != 0 || got.Renamed != renamed || got.Records != 11 {
				t.Errorf("%s, time %d: %d %s %s", name, n, code, out, errs)
			}
			found, all := 0, s.starts(t)
			for id := range all {
				if _, ok := want[id]; ok {
					found++
				}
			}
			if len(all) != 11 || found != seeded.want {
				t.Errorf("%s, time %d: %v", name, n, all)
			}
		}
		if code, out, _ := s.bursar(t.Context(), "status"); !strings.Contains(out, " 0 conflicts") {
			t.Error(code, out)
		}
	}
}

func TestAccountingFilesOfGridEngineAreImportedOnce(t *testing.T) {
	s := aggregator(t)
	for n, added := range []int64{38, 0} {
		code, out, errs := s.importing(t, "-label", "katana", "-format", "json", "gridengine", accountingFiles)
		if got := importOf(t, out); code != 0 || got.Records != 38 || got.Skipped != 11 || got.Committed.Added != added || s.count(t, "katana") != 38 {
			t.Errorf("time %d: %d %s %s", n, code, out, errs)
		}
	}
}

// The sources that are named to people are those with a setting for files to import.
func TestImport_NamesTheSourcesThatReadFiles(t *testing.T) {
	_, _, errs := shell{}.bursar(t.Context(), "import")
	all, err := filepath.Glob("../../../plugins/source/*")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	var types []string
	for _, folder := range all {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || slices.Contains(types, filepath.Base(folder)) {
				return err
			}
			text, err := os.ReadFile(path)
			if regexp.MustCompile("`hcl:\"import[\",]").Match(text) {
				types = append(types, filepath.Base(folder))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := "TYPE is one of " + strings.Join(types, ", ") + ";"; !strings.Contains(errs, want) {
		t.Errorf("%s, want %s", errs, want)
	}
}

func TestADryRunAsksNoClusterAndSaysWhatWouldCome(t *testing.T) {
	dir := t.TempDir()
	half := write(t, dir, "2025-04-01T00:00:30.json", `{"ns": [`)
	s := shell{env: map[string]string{"BURSAR_ADDR": "http://127.0.0.1:1"}}
	code, out, errs := s.importing(t, "-dry-run", "ai4", snapshots, half)
	if code != 2 || !strings.Contains(out, "records") || !strings.Contains(out, "  2025-03") || !strings.Contains(errs, "2025-04-01T00:00:30.json: byte 8: the file breaks off") || !strings.Contains(errs, "1 would go to quarantine") {
		t.Error(code, out, errs)
	}
	for _, c := range []struct{ args, want string }{
		{"ai4 /nowhere/at/all", "folder /nowhere/at does not exist"},
		{"nothing " + snapshots, "expected one of ai4, auditor, gridengine"},
		{"-label a/b ai4 " + snapshots, "use letters"},
		{"-name -x ai4 " + snapshots, "name of the import"},
		{"ai4", "missing file: use bursar import ai4 FILE…"},
		{half, "missing source: use bursar import TYPE " + half},
		{"", "TYPE is one of ai4, auditor, gridengine, htcondor"},
		{"replay " + half, "the source replay reads nothing but what an agent follows; bursar import TYPE FILE… takes ai4, auditor, gridengine, htcondor"},
		{"ai4 " + snapshots, "refused"},
	} {
		if code, out, errs := s.importing(t, strings.Fields(c.args)...); code != 1 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d %s %s", c.args, code, out, errs)
		}
	}
}

func TestWhatFailsIsInQuarantineUntilItIsImportedUnderAMendedMapping(t *testing.T) {
	s := aggregator(t)
	config := func(record string) string {
		return write(t, t.TempDir(), "agent.hcl", "agent {\n  name = \"head1\"\n}\nsource \"ai4\" \"cloud\" {\n  interval = \"1h\"\n  config { timezone = \"Europe/Madrid\" }\n  record {\n"+record+"\n  }\n}\n")
	}
	code, out, errs := s.importing(t, "-config", config(`when = job.namespace != "ai4life"
component "Cores" { amount = job.cores - 4 }`), "-format", "json", "ai4", snapshots)
	first := importOf(t, out)
	if code != 2 || first.Quarantined != 3 || first.LeftOut != 3 || first.Records != 5 || !strings.Contains(errs, "3 went to quarantine") {
		t.Fatal(code, out, errs)
	}
	if _, out, _ := s.bursar(t.Context(), "quarantine", "list"); strings.Count(out, "import/ai4/cloud/") != 3 {
		t.Error(out)
	}
	if code, _, errs := s.bursar(t.Context(), "quarantine", "retry", "-all"); code != 2 || !strings.Contains(errs, "import the file again") {
		t.Error(code, errs)
	}
	code, out, errs = s.importing(t, "-config", config(`when = job.namespace != "imagine"
meta = { agent_version = agent.version }`), "-withdraw", "-format", "json", "ai4", snapshots)
	if second := importOf(t, out); code != 0 || second.LeftOut != 4 || second.Withdrawn != 4 || second.Records != 7 {
		t.Error(code, out, errs)
	}
	if code, out, _ := s.bursar(t.Context(), "quarantine", "list", "-format", "csv"); code != 0 || strings.Contains(out, "import/") {
		t.Error(out)
	}
	if n := s.count(t, "cloud"); n != 7 {
		t.Errorf("%d records", n)
	}
	if code, out, errs := s.bursar(t.Context(), "records", "-where", "agent_version=1.2.3", "-limit", "-1", "-format", "csv"); code != 0 || strings.Count(out, "\ncloud-") != 7 {
		t.Error("agent.version is not that of bursar:", code, out, errs)
	}
	if code, out, errs := s.bursar(t.Context(), "status"); strings.Contains(out+errs, "not add up") || !strings.Contains(out, "agents      none") || !strings.Contains(out, "0 quarantined") {
		t.Error(code, out, errs)
	}
	code, _, errs = s.importing(t, "-config", config("ide = 1"), "ai4", snapshots)
	if code != 1 || !strings.Contains(errs, "agent.hcl line 8") {
		t.Error(code, errs)
	}
}

// rude is a server before the aggregator that loses the answers to the first
// chunks.
func rude(t *testing.T, s shell, lose int64) shell {
	t.Helper()
	proxy, chunks := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "localhost"}), &atomic.Int64{}
	proxy.Transport = s.client().Transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.URL.Path, "/") == 4 && strings.HasPrefix(r.URL.Path, "/v1/imports/") && chunks.Add(1) <= lose {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": server.URL}}
}

func TestAnAnswerThatIsLostLosesAndDoublesNothing(t *testing.T) {
	s := aggregator(t)
	code, out, errs := rude(t, s, 2).importing(t, "-format", "table", "ai4", snapshots)
	if code != 0 || !strings.Contains(errs, "they are sent again") || !strings.Contains(errs, "The answers to ") || s.count(t, "ai4") != 11 {
		t.Error(code, out, errs)
	}
}

func TestAnImportTakesNoAgentsPlaceAndEndsWhenAnotherOfItsNameBegins(t *testing.T) {
	s := aggregator(t)
	post := func(path, body string) (int, string) {
		t.Helper()
		resp, err := s.client().Post("http://localhost"+path, "application/octet-stream", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var out bytes.Buffer
		_, _ = out.ReadFrom(resp.Body)
		return resp.StatusCode, out.String()
	}
	_, first := post("/v1/imports/x", "")
	var begun struct{ Epoch string }
	if err := json.Unmarshal([]byte(first), &begun); err != nil || len(begun.Epoch) != 32 {
		t.Fatal(first)
	}
	if code, _ := post("/v1/imports/x", ""); code != 200 {
		t.Error(code)
	}
	if code, text := post("/v1/imports/x/"+begun.Epoch, "chunk"); code != http.StatusConflict || !strings.Contains(text, "another one began") {
		t.Error(code, text)
	}
}

// Everything of another bursar comes under its own ids; what a source knows better counts,
// and is named.
func TestImport_OfAnotherBursar_IsComparedWithTheCluster(t *testing.T) {
	from, address := aggregatorWith(t, "access {\n  plain_role = \"read\"\n}\n")
	if code, out, errs := from.importing(t, "-label", "cloud", "ai4", snapshots); code != 0 {
		t.Fatal(code, out, errs)
	}
	if code, out, errs := from.importing(t, "-label", "katana", "gridengine", accountingFiles); code != 0 {
		t.Fatal(code, out, errs)
	}
	to := aggregator(t)
	for n, added := range []string{"new at the cluster", "known already"} {
		code, out, errs := to.importing(t, "auditor", address)
		if code != 0 || !strings.Contains(out, added) || !strings.Contains(errs, "equal on both sides") || !strings.Contains(out, "Cores × s") {
			t.Errorf("time %d: %d %s %s", n, code, out, errs)
		}
	}
	if want, got := from.starts(t), to.starts(t); len(want) != 49 || len(got) != len(want) {
		t.Errorf("%d of %d records", len(got), len(want))
	}
	other := aggregator(t)
	if code, _, errs := other.importing(t, "-label", "cloud", "-name", "before", "ai4", snapshots); code != 0 {
		t.Fatal(errs)
	}
	ids := slices.Sorted(maps.Keys(from.starts(t)))
	one := ids[slices.IndexFunc(ids, func(id string) bool { return strings.HasPrefix(id, "katana-") })]
	// It ends after the run was submitted: before, it would be an earlier run of the number.
	record := fmt.Sprintf(`{"record_id":%q,"components":[],"start_time":"2012-10-01T00:00:00Z","stop_time":"2026-10-01T00:00:00Z"}`, one)
	resp, err := other.client().Post("http://localhost/record", "application/json", strings.NewReader(record))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	code, out, errs := other.importing(t, "auditor", address)
	if code != 2 || !strings.Contains(errs, "as another source has them") || !strings.Contains(errs, "differ") {
		t.Error(code, out, errs)
	}
}
