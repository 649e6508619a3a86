package hcl_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestTLSBlockChecksItsFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if _, err := identity.CreateCA(filepath.Join(dir, name), name, time.Hour, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ ca, cert, key, err string }{
		{"a/ca.pem", "a/ca.pem", "a/ca.key", ""},
		{"a/ca.pem", "a/ca.pem", "b/ca.key", "certificate and key do not fit"},
		{"a/ca.key", "a/ca.pem", "a/ca.key", "holds no PEM certificate"},
		{"no.pem", "a/ca.pem", "a/ca.key", "is the path right?"},
		{"a/ca.pem", ".", "a/ca.key", "is a folder, not a file"},
	} {
		src := fmt.Sprintf("tls {\n ca = %q\n cert = %q\n key = %q\n}\n", c.ca, c.cert, c.key)
		file, diags := hcl.Parse(filepath.Join(dir, "x.hcl"), []byte(src))
		var cfg struct {
			TLS *hcl.TLS `hcl:"tls,block"`
		}
		diags.Extend(hcl.Decode(file, &cfg, file.Context()))
		if diags.HasErrors() {
			t.Fatalf("decoding looked at the files: %v", diags.Error())
		}
		diags.Extend(cfg.TLS.Check())
		if c.err == "" && diags.HasErrors() || !strings.Contains(diags.Error(), c.err) {
			t.Errorf("%v: %v", c, diags.Error())
		}
		if cfg.TLS.Range.Start.Line != 1 {
			t.Errorf("%v", cfg.TLS.Range)
		}
	}
}

func TestLogBlockMakesAHandler(t *testing.T) {
	for _, c := range []struct{ format, want string }{
		{"", `level=INFO msg=hello`}, {"text", `level=INFO msg=hello`}, {"json", `"level":"INFO","msg":"hello"`},
	} {
		var out bytes.Buffer
		l := hcl.Log{Format: hcl.String{Value: c.format}}
		log := slog.New(l.Handler(&out, l.SlogLevel()))
		log.Debug("silent")
		log.Info("hello")
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "silent") {
			t.Errorf("%q: %s", c.format, out.String())
		}
	}
}
