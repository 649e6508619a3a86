package hcl_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// writePair puts a self-signed certificate and its key into dir.
func writePair(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: cert}, name + ".key": {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLSBlockChecksItsFiles(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, "a")
	writePair(t, dir, "b")
	for _, c := range []struct{ ca, cert, key, err string }{
		{"a.pem", "a.pem", "a.key", ""},
		{"a.pem", "a.pem", "b.key", "certificate and key do not fit"},
		{"a.key", "a.pem", "a.key", "holds no PEM certificate"},
		{"no.pem", "a.pem", "a.key", "is the path right?"},
		{"a.pem", ".", "a.key", "not a regular file"},
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
