package hcl_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
)

func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.hcl")
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte(treeSource))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, diags := hcl.Parse("testdata/fuzz.hcl", src)
		cfg := config{}
		ctx := &hcl.EvalContext{Functions: hcl.ExpressionFunctions()}
		diags.Extend(hcl.Decode(file, &cfg, ctx))
		tree, more := hcl.Evaluate(file.Body, ctx)
		diags.Extend(more)
		_ = fmt.Sprint(tree)
		_ = diags.Error()
		if err := diags.Write(io.Discard, file.Sources, true); err != nil {
			t.Fatal(err)
		}
		if _, err := diags.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		if once, bad := hcl.FormatFile("x.hcl", src); !bad.HasErrors() {
			if _, bad := hcl.FormatFile("x.hcl", once); bad.HasErrors() {
				t.Fatalf("%q does not parse any more: %v", once, bad)
			}
		}
	})
}

func FuzzBytes(f *testing.F) {
	for _, s := range []string{"16G", "16Gn", "1.5K", "", "-1", "9999999999999E", "1e9G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := hcl.ParseBytes(s); err == nil && n < 0 {
			t.Fatalf("%q gave %d", s, n)
		}
	})
}

func FuzzSeconds(f *testing.F) {
	for _, s := range []string{"1-02:03:04", "03:04.5", "1h30m", "90", "-1", "1-", "::", "UNLIMITED"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := hcl.ParseSeconds(s); err == nil && d < 0 {
			t.Fatalf("%q gave %v", s, d)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"1m", "30d", "1h30m", "1w", "-1s", "1.5.5h", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := hcl.ParseDuration(s); err == nil && d < 0 {
			t.Fatalf("%q gave %v", s, d)
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"8GiB", "500MB", "4096", "8G", "-1B", "1.5.5MB", "8EiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := hcl.ParseSize(s)
		if err != nil {
			return
		}
		if again, err := hcl.ParseSize(hcl.Size{Bytes: n}.String()); n < 0 || err != nil || again != n {
			t.Fatalf("%q gave %d, then %d, %v", s, n, again, err)
		}
	})
}
