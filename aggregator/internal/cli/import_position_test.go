package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// breaking is a server before the aggregator that refuses all chunks behind some.
func breaking(t *testing.T, s shell, after int64) shell {
	t.Helper()
	proxy, chunks := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "localhost"}), &atomic.Int64{}
	proxy.Transport = s.client().Transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.URL.Path, "/") == 4 && strings.HasPrefix(r.URL.Path, "/v1/imports/") && chunks.Add(1) > after {
			http.Error(w, `{"error":"no more"}`, http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": server.URL}}
}

// manyRecords is an aggregator with records, some of which are open or have the same stop.
func manyRecords(t *testing.T, n int) (address string) {
	t.Helper()
	from, address := aggregatorWith(t, "access {\n  plain_role = \"read\"\n}\n")
	for i := range n / 1000 {
		var frames []*wire.Frame
		for j := range 1000 {
			k := int64(i*1000 + j)
			r := record.Record{
				ID: fmt.Sprintf("slurm-%06d", k), Meta: record.Meta{{Key: "site_id", Values: []string{strings.Repeat("x", 40)}}},
				Start: record.Time(1e15 + k*1e6), Stop: record.Time(1e15 + k/3*3e6 + 5e6), Submit: record.None,
				Components: []record.Component{{Name: "Cores", Amount: k%7 + 1}, {Name: "TotalCPU", Amount: k * 1e10, Kind: record.Total}},
			}
			if k%1000 == 7 {
				r.Stop = record.None
			}
			frames = append(frames, &wire.Frame{Kind: wire.KindRecord, SourceType: "ai4", SourceLabel: "x", Rank: record.RankImport, ID: r.ID, Record: r, Version: record.Version{Ended: !r.Open()}})
		}
		from.seed(t, "many", frames)
	}
	return address
}

// An import of AUDITOR's records that breaks off, as often as it does, goes on where it was,
// and at its end all counts and sums are those of one that did not.
func TestImport_BrokenOff_ContinuesAtItsPosition(t *testing.T) {
	const n = 12_000
	address := manyRecords(t, n)
	to, home := aggregator(t), t.TempDir()
	at := filepath.Join(home, ".local/state/bursar/import-import-auditor-auditor.position")
	for time := range 3 {
		s := breaking(t, to, 2)
		s.env["HOME"] = home
		code, out, errs := s.importing(t, "auditor", address)
		if code != 1 || !strings.Contains(errs, "no more") || strings.Contains(errs, "Continuing at "+at) != (time > 0) {
			t.Fatalf("time %d: %d %s %s", time, code, out, errs)
		}
	}
	position, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	before := to.count(t, "slurm")
	if before == 0 || before > n-1000 {
		t.Fatalf("%d records are there before the last part", before)
	}
	broken := append(position, `{"epoch":"half a li`...)
	if err := os.WriteFile(at, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	to.env["HOME"] = home
	code, out, errs := to.importing(t, "-format", "json", "auditor", address)
	got := importOf(t, out)
	if code != 0 || !strings.Contains(errs, "Continuing at "+at) || !strings.Contains(out, `"equal": true`) || strings.Contains(out, `"read": "0"`) {
		t.Error(code, out, errs)
	}
	// The overlap of a server, a week, is all of these records: they come again, and change nothing.
	if got.Records != n || got.Committed.Added != n || to.count(t, "slurm") != n {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Error("the position is there when all is done:", err)
	}

	for what, c := range map[string]struct {
		s    shell
		args []string
		want string
	}{
		"another cluster": {aggregator(t), []string{"auditor", address}, "the cluster is another one"},
		"other inputs":    {to, []string{"auditor", address + "/"}, "it is of other files"},
	} {
		if err := os.WriteFile(at, position, 0o600); err != nil {
			t.Fatal(err)
		}
		c.s.env["HOME"] = home
		code, out, errs := c.s.importing(t, c.args...)
		if code != 0 || !strings.Contains(errs, c.want) || !strings.Contains(errs, "Reading from the start") || !strings.Contains(errs, "equal on both sides") {
			t.Errorf("%s: %d %s %s", what, code, out, errs)
		}
	}
}
