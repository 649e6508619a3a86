package web_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
)

func (s *site) file(path string, header ...string) *http.Response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(access.With(s.t.Context(), access.Daemon()), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w.Result()
}

func content(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheLibraryOfChartsIsTheOneThatIsSaid(t *testing.T) {
	about, err := os.ReadFile("static/echarts.README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile("SHA-256 \\| `([0-9a-f]{64})`").FindSubmatch(about)
	library, err := os.ReadFile("static/echarts.simple.min.js")
	if err != nil || said == nil {
		t.Fatal(err, said)
	}
	if sum := sha256.Sum256(library); hex.EncodeToString(sum[:]) != string(said[1]) {
		t.Errorf("static/echarts.simple.min.js has the SHA-256 %x, and static/echarts.README.md says %s; take the file from the npm package that is named there", sum, said[1])
	}
	for _, name := range []string{"echarts.LICENSE.txt", "echarts.NOTICE.txt", "echarts.LICENSE-d3.txt", "zrender.LICENSE.txt"} {
		if info, err := os.Stat("static/" + name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAVersionedFileIsKeptForeverAndTheSameFileWithoutItIsNot(t *testing.T) {
	s := newSite(t)
	_, page, _ := s.get("/ui/usage")
	address := regexp.MustCompile(`/ui/static/usage\.js\?v=[0-9a-f]{16}`).FindString(page)
	if address == "" {
		t.Fatal("the page has no versioned script")
	}
	for path, want := range map[string]string{
		address: "public, max-age=31536000, immutable", "/ui/static/usage.js": "public, max-age=300", "/ui/static/usage.js?v=0": "no-store",
	} {
		r := s.file(path)
		if got := r.Header.Get("Cache-Control"); got != want || r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d, %q, want %q", path, r.StatusCode, got, want)
		}
		if typ := r.Header.Get("Content-Type"); typ != "text/javascript; charset=utf-8" {
			t.Errorf("%s has the type %q", path, typ)
		}
	}
}

func TestThatAFileIsNotThereIsNotKept(t *testing.T) {
	s := newSite(t)
	if r := s.file("/ui/static/nothing.js?v=0"); r.StatusCode != http.StatusNotFound || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %q", r.StatusCode, r.Header.Get("Cache-Control"))
	}
}

func TestFilesArePackedForWhoTakesThat(t *testing.T) {
	s := newSite(t)
	const path = "/ui/static/usage.js"
	plain := s.file(path)
	whole := content(t, plain.Body)
	for accept, packed := range map[string]bool{
		"gzip": true, "gzip, deflate, br": true, "br;q=1.0, gzip;q=0.5": true, "*": true, "GZIP": true,
		"": false, "identity": false, "gzip;q=0": false, "*;q=0": false, "gzip;q=0, *": false, "br": false,
	} {
		r := s.file(path, "Accept-Encoding", accept)
		if got := r.Header.Get("Content-Encoding") == "gzip"; got != packed || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: packed is %t, want %t", accept, got, packed)
		}
		var body io.Reader = r.Body
		if packed {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if string(content(t, body)) != string(whole) {
			t.Errorf("%q: another content", accept)
		}
		tag := r.Header.Get("ETag")
		if tag == "" || packed == (tag == plain.Header.Get("ETag")) {
			t.Errorf("%q: the tag is %q", accept, tag)
		}
		if again := s.file(path, "Accept-Encoding", accept, "If-None-Match", tag); again.StatusCode != http.StatusNotModified {
			t.Errorf("%q: %d for what is known", accept, again.StatusCode)
		}
	}
}

func TestTheLibraryOfChartsIsLoadedWhereAChartIsOnly(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"))
	for path, want := range map[string]bool{"/ui/usage?window=2026-01": true, "/ui/usage?window=2020": false, "/": false, "/ui/records": false, "/ui/cluster": false} {
		if _, body, _ := s.get(path); strings.Contains(body, "echarts") != want {
			t.Errorf("%s: the library is there: %t, want %t", path, !want, want)
		}
	}
}
