package api

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
)

// Who has no role decides neither how much is logged nor how much is remembered of it.
func TestRefuse_PathsOfAClientFillNeitherLogNorMemory(t *testing.T) {
	var log bytes.Buffer
	s := &Server{opt: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	for i := range 2000 {
		path := "/v1/" + strings.Repeat("x\n", i) + "level=ERROR"
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		r = r.WithContext(access.With(r.Context(), access.Principal{Name: "reader.example"}))
		if w := httptest.NewRecorder(); !s.denyWithoutRole(w, r) || w.Code < 400 {
			t.Fatalf("%d bytes of path: %d", len(path), w.Code)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || log.Len() > 2000 {
		t.Errorf("%d lines, %d bytes: %.500s", n, log.Len(), log.String())
	}
	if len(s.complaints.last) != 1 {
		t.Errorf("%d are remembered", len(s.complaints.last))
	}
	r := httptest.NewRequest("GET", "/"+strings.Repeat("y", 100_000), nil)
	r = r.WithContext(access.With(r.Context(), access.Principal{Name: "another"}))
	s.denyWithoutRole(httptest.NewRecorder(), r)
	if log.Len() > 4000 {
		t.Errorf("a line has %d bytes", log.Len())
	}
}
