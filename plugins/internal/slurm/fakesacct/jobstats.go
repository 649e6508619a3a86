package fakesacct

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"testing"
)

// Jobstats packs a text as Jobstats does for AdminComment.
func Jobstats(t testing.TB, text io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return "JS1:" + base64.StdEncoding.EncodeToString(b.Bytes())
}
