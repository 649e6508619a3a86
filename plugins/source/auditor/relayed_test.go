package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// neighbour is a bursar with a record of each origin, of which the last is open.
func neighbour(t *testing.T, origins ...string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health_check", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/records", func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Query().Has("open")
		for i, origin := range origins {
			if stop := `"2026-03-01T00:00:01Z"`; open != (i < len(origins)-1) {
				if open {
					stop = "null"
				}
				fmt.Fprintf(w, `{"record_id":"r%d","meta":{"note":["/auditor/"]},"components":[],"start_time":"2026-03-01T00:00:00Z","stop_time":%s,"origin":%q}`+"\n", i, stop, origin)
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestBursar_RelayedRecords_AreRefusedByOriginUnlessWanted(t *testing.T) {
	url := neighbour(t, "head/slurm/x", "pushed", "import/auditor/old", "b/auditor/a", "b/auditor/a", "c/auditor/a")
	text := func(name string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(url)} }
	imported := sdk.Node{Name: "import", Value: sdk.Strings(url)}
	relayed := func(on bool) sdk.Node { return sdk.Node{Name: "relayed", Value: sdk.Bool(on)} }
	for name, c := range map[string]struct {
		nodes   []sdk.Node
		runs    int
		refused []string
	}{
		"followed":             {[]sdk.Node{text("url")}, 3, []string{"origin b/auditor/a", "origin c/auditor/a"}},
		"followed, wanted":     {[]sdk.Node{text("url"), relayed(true)}, 6, nil},
		"imported":             {[]sdk.Node{imported}, 6, nil},
		"imported, not wanted": {[]sdk.Node{imported, relayed(false)}, 3, []string{"origin b/auditor/a", "origin c/auditor/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, c.nodes...)
			for range 2 {
				r.refused = nil
				r.must()
				var refused []string
				for _, x := range r.refused {
					refused = append(refused, x.Run)
					if !strings.Contains(x.Message, "relayed = true") {
						t.Error(x.Message)
					}
				}
				if len(r.runs) != c.runs || !slices.Equal(refused, c.refused) {
					t.Errorf("%d runs, refused %q; want %d, %q", len(r.runs), refused, c.runs, c.refused)
				}
			}
		})
	}
}
