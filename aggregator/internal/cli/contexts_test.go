package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestContext_OfTwoClusters_CommandsAskTheOneInUse(t *testing.T) {
	first, _ := filled(t)
	second, _ := filled(t)
	s := shell{env: map[string]string{"HOME": t.TempDir()}}
	a, b := first.env["BURSAR_ADDR"], second.env["BURSAR_ADDR"]
	for _, step := range []struct {
		line string
		code int
		want string // in stdout or stderr
	}{
		{"records", 1, "refused"},
		{"context list", 0, "NAME"},
		{"context use nemo", 1, "there are none"},
		{"context add nemo -address " + a, 0, "Commands use nemo"},
		{"records", 0, "alice"},
		{"context add bw -address http://127.0.0.1:1," + b, 0, "Commands use nemo"},
		{"context list", 0, a},
		{"context use bww", 1, `did you mean "bw"?`},
		{"context use bw", 0, ""},
		{"records", 0, "alice"},
		{"records -context nemo", 0, "alice"},
		{"records -context none", 1, "there is no context"},
		{"records -address http://127.0.0.1:1 -context nemo", 1, "refused"},
		{"context list -format json", 0, `"used": true`},
		{"context add bad -address http://", 1, "want for example"},
		{"context add bad -address " + a + " -ca-cert none.pem", 1, "none.pem"},
		{"context add bad", 1, "-address is needed"},
		{"__complete context use", 0, "nemo"},
		{"context remove bw", 0, ""},
		{"records", 1, "refused"},
		{"context list -format csv", 0, "nemo,,"},
	} {
		args := strings.Fields(step.line)
		if args[0] == "__complete" {
			args = append(args, "")
		}
		code, out, errs := s.bursar(t.Context(), args...)
		if code != step.code || !strings.Contains(out+errs, step.want) {
			t.Errorf("%s: %d\n%s%s", step.line, code, out, errs)
		}
	}
	path := filepath.Join(s.env["HOME"], ".config/bursar/contexts.hcl")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if err := os.WriteFile(path, []byte("context \"x\" {\n  adress = \"y\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := s.bursar(t.Context(), "records"); code != 1 || !strings.Contains(errs, "contexts.hcl line 2") {
		t.Errorf("a file with a mistake: %d\n%s", code, errs)
	}
}
