package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// configured is an aggregator that obeys a configuration; got is what was
// committed.
func configured(t *testing.T, obeyed string) (s shell, got *string) {
	t.Helper()
	got = new(string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "GET /v1/config":
			_, _ = io.WriteString(w, `{"digest":"d1","committed_by":"agg2","committed_at":"2026-02-03T04:05:06Z","document":`+obeyed+`,"nodes":[]}`)
		case "PUT /v1/config":
			body, _ := io.ReadAll(r.Body)
			*got = r.URL.RawQuery + " " + string(body)
			_, _ = io.WriteString(w, `{"digest":"d2"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, got
}

const mine = `aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  tls {
    ca   = "ca.pem"
    cert = "agg1.pem"
    key  = "agg1.key"
  }
  metrics {
    site_meta_key = "site_id"
  }
}

agent "head1" {
  address = "head1:7070"
}
agent "head2" { address = "head2:7070" }
`

const (
	theirs = `{"format":1,"blocks":[{"type":"agent","labels":["head1"],"values":{"address":"head1:7071"}},{"type":"agent","labels":["head3"],"values":{"address":"head3\u001b[2J:1"}},{"type":"metrics","values":{"site_meta_key":"site_id"}}]}`
	same   = `{"format":3,"settings":{"agent":[{"address":"head1:7070","name":"head1"},{"address":"head2:7070","name":"head2"}],"metrics":{"site_meta_key":"site_id"}}}`
)

// files writes the configuration where the test runs, so that names are short.
func files(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("agg1.hcl", []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
}

// here is a golden file of this package, wherever the test runs.
func here(t *testing.T) func(name, got string) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return func(name, got string) {
		t.Helper()
		t.Chdir(dir)
		golden(t, name, got)
	}
}

func TestFilesThatDifferFromTheClustersConfigurationAreShownWithTheirLines(t *testing.T) {
	golden := here(t)
	s, _ := configured(t, theirs)
	files(t)
	code, out, errs := s.bursar(t.Context(), "config", "diff", "-config", "agg1.hcl")
	if code != 2 || strings.Contains(out, "\x1b") {
		t.Error(code, errs, out)
	}
	golden("config-diff.txt", out+"---\n"+errs)
}

func TestFilesThatAgreeWithTheClusterAreSaidTo(t *testing.T) {
	s, got := configured(t, same)
	files(t)
	for _, command := range []string{"diff", "commit"} {
		code, out, errs := s.bursar(t.Context(), "config", command, "-config", "agg1.hcl")
		if code != 0 || out != "" || !strings.Contains(errs, "agree") && command == "diff" {
			t.Error(command, code, out, errs)
		}
	}
	if *got != "" && !strings.Contains(*got, same) {
		t.Error(*got)
	}
}

func TestACommitReplacesWhatWasShown(t *testing.T) {
	golden := here(t)
	s, got := configured(t, theirs)
	files(t)
	code, out, errs := s.bursar(t.Context(), "config", "commit", "-config", "agg1.hcl")
	if code != 0 {
		t.Error(code, errs)
	}
	if *got != "replaces=d1 "+same {
		t.Error(*got)
	}
	golden("config-commit.txt", out+"---\n"+errs)
}

func TestFilesWithErrorsAreNeitherComparedNorCommitted(t *testing.T) {
	s, got := configured(t, theirs)
	bad := write(t, t.TempDir(), "bad.hcl", "aggregator {\n  nme = 1\n}\n")
	for _, command := range []string{"diff", "commit"} {
		if code, _, errs := s.bursar(t.Context(), "config", command, "-config", bad); code != 1 || !strings.Contains(errs, "bad.hcl line 2, in aggregator") || *got != "" {
			t.Error(command, code, errs, *got)
		}
	}
}

func TestConfigDiff_WithoutAFile_SaysHowToNameOne(t *testing.T) {
	s, _ := configured(t, theirs)
	for _, command := range []string{"diff", "commit"} {
		code, _, errs := s.bursar(t.Context(), "config", command)
		if code != 1 || !strings.Contains(errs, "no configuration at /etc/bursar/aggregator.hcl: name the files of a node with -config FILE") {
			t.Error(command, code, errs)
		}
	}
}

func TestAClusterThatIsNewerThanTheProgramIsNotMisread(t *testing.T) {
	s, _ := configured(t, `{"format":2,"blocks":[]}`)
	files(t)
	if code, _, errs := s.bursar(t.Context(), "config", "diff", "-config", "agg1.hcl"); code != 1 || !strings.Contains(errs, "as new as the cluster") {
		t.Error(code, errs)
	}
}
