package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/proto/record"
)

func example(t *testing.T) *clusterconfig.Document {
	t.Helper()
	c, _, diags := config.Load("../../../hcl/examples/aggregator-directory.hcl")
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return c.Shared()
}

func TestTheDirectoryIsTheSameFromTheFilesAndFromTheLog(t *testing.T) {
	doc := example(t)
	here, err := config.ReadShared(doc)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := clusterconfig.Decode(doc.Encode())
	if err != nil {
		t.Fatal(err)
	}
	there, err := config.ReadShared(decoded)
	if err != nil {
		t.Fatal(err)
	}
	places := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Place" }, cmp.Ignore())
	if d := cmp.Diff(here.Directory, there.Directory, places, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if decoded.Digest() != doc.Digest() {
		t.Error("it has another digest")
	}
}

func TestTheExampleOfADirectorySaysWhatItsCommentsSay(t *testing.T) {
	s, err := config.ReadShared(example(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := accounting.NewDirectory(s.Directory, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) record.Time {
		at, err := accounting.ParseTime(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct{ user, group, at, project, pi string }{
		{"x", "telephony", "2026-06-30", "bell-labs", "bell"}, {"x", "telephony", "2026-07-01", "networks", "huygens"}, {"x", "telephony", "2026-10-01", "networks", "bell"},
		{"x", "bellgrp", "2026-10-01", "bell-labs", "bell"}, {"ann", "", "2026-10-01", "bell-labs", "bell"}, {"carl", "", "2026-06-30", "physics", "phys"},
		{"eve", "guest", "2026-10-01", "guests", "support"}, {"fred", "chem", "2026-10-01", "", ""},
	} {
		p, _ := d.Project(c.user, c.group, at(c.at))
		pi, _ := d.PI(p, at(c.at))
		if p != c.project || pi != c.pi {
			t.Errorf("%v: %q of %q", c, p, pi)
		}
	}
	if !d.Exempt("guests", at("2026-10-01")) || d.Exempt("bell-labs", at("2026-10-01")) {
		t.Error("who is exempt")
	}
	if f, ok := d.Factor("node", at("2026-10-01")); !ok || f.String() != "0.9" {
		t.Error(f, ok)
	}
}

func FuzzReadShared(f *testing.F) {
	f.Add([]byte(`{"format":3,"settings":{"project":[{"groups":["g"],"id":"a","pi":"x","since":[{"exempt":true,"from":"2026-01-01"}]}]}}`))
	f.Add([]byte(`{"format":3,"settings":{"directory":{"file":[{"columns":["user","group"],"file":"p","rows":[["a","g"]]}]},"host_class":[{"id":"c","pattern":"x"}]}}`))
	f.Add([]byte(`{"format":3,"settings":{"contribution":[{"amount":"1","by":"x","id":"c"}],"service_units":{"components":{"Cores":"1"}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := clusterconfig.Decode(text)
		if err != nil {
			return
		}
		if s, err := config.ReadShared(doc); err == nil {
			if _, err := accounting.NewDirectory(s.Directory, nil); err != nil {
				t.Error(err)
			}
		}
	})
}
