package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestTheCertificatesOfTheLongWayAreMadeAsWritten(t *testing.T) {
	page, err := os.ReadFile("../../SETUP.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, ran := t.TempDir(), 0
	for line := range strings.SplitSeq(string(page), "\n") {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "bursar tls ")
		if !ok {
			continue
		}
		args := append([]string{"tls"}, strings.Fields(strings.ReplaceAll(command, "/etc/bursar/tls", dir))...)
		if code, _, errs := (shell{}).bursar(t.Context(), args...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", line, code, errs)
		}
		ran++
	}
	if ran != 3 {
		t.Fatalf("%d commands were found, want 3", ran)
	}
	for _, name := range []string{"nemo-head1", "agg1"} {
		keys, err := identity.Load(identity.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")})
		if err != nil {
			t.Fatal(err)
		}
		if id, err := keys.Identity(); err != nil || id.Name != name {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}
