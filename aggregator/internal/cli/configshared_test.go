package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// configured is an aggregator that has committed a configuration.
func configured(t *testing.T, document string) (shell, *apitest.World) {
	t.Helper()
	s, w := filled(t)
	if _, err := w.API().CommitConfig(t.Context(), nil, json.RawMessage(document)); err != nil {
		t.Fatal(err)
	}
	return s, w
}

// committed is the active configuration.
func committed(t *testing.T, w *apitest.World) v1.Config {
	t.Helper()
	c, err := w.API().Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
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
	theirs = `{"format":3,"settings":{"agent":[{"address":"head1:7071","name":"head1"},{"address":"head3\u001b[2J:1","name":"head3"}],"metrics":{"site_meta_key":"site_id"}}}`
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
	s, w := configured(t, same)
	files(t)
	before := committed(t, w)
	for _, command := range []string{"diff", "commit"} {
		code, out, errs := s.bursar(t.Context(), "config", command, "-config", "agg1.hcl")
		if code != 0 || out != "" || !strings.Contains(errs, "agree") && command == "diff" {
			t.Error(command, code, out, errs)
		}
	}
	if after := committed(t, w); after.Digest != before.Digest {
		t.Error(after)
	}
}

func TestACommitReplacesWhatWasShown(t *testing.T) {
	golden := here(t)
	s, w := configured(t, theirs)
	files(t)
	seen := committed(t, w).Digest
	code, out, errs := s.bursar(t.Context(), "config", "commit", "-config", "agg1.hcl")
	if code != 0 {
		t.Error(code, errs)
	}
	if want := "PUT /v1/config?replaces=" + string(seen) + " " + same; !slices.Contains(w.Asked(), want) || string(committed(t, w).Document) != same {
		t.Error(committed(t, w))
	}
	golden("config-commit.txt", out+"---\n"+errs)
}

func TestFilesWithErrorsAreNeitherComparedNorCommitted(t *testing.T) {
	s, w := configured(t, theirs)
	before := committed(t, w)
	bad := write(t, t.TempDir(), "bad.hcl", "aggregator {\n  nme = 1\n}\n")
	for _, command := range []string{"diff", "commit"} {
		if code, _, errs := s.bursar(t.Context(), "config", command, "-config", bad); code != 1 || !strings.Contains(errs, "bad.hcl line 2, in aggregator") || committed(t, w).Digest != before.Digest {
			t.Error(command, code, errs)
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
	s, _ := answered(t, http.StatusOK, v1.Config{Document: json.RawMessage(`{"format":9,"settings":{}}`)})
	files(t)
	if code, _, errs := s.bursar(t.Context(), "config", "diff", "-config", "agg1.hcl"); code != 1 || !strings.Contains(errs, "as new as the cluster") {
		t.Error(code, errs)
	}
}
