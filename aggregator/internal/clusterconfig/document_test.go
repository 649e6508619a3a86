package clusterconfig_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
)

var update = flag.Bool("update", false, "rewrite golden files")

// agent is a block as files give it.
func agent(name, address, at string) clusterconfig.Block {
	b := clusterconfig.Block{Type: "agent", Labels: []string{name}, At: at}
	b.Set("address", address, at)
	return b
}

func doc(blocks ...clusterconfig.Block) *clusterconfig.Document { return clusterconfig.New(blocks...) }

// rich is a document with everything that a document may hold.
func rich() *clusterconfig.Document {
	usage := clusterconfig.Block{Type: "usage"}
	usage.Set("dimensions", []string{"site_id", "user_id"}, "")
	usage.Set("limit", 12, "")
	usage.Set("prices", map[string]any{"Cores": 1.5, "<&>": true}, "")
	group := clusterconfig.Block{Type: "group", Labels: []string{"atlas", "x"}}
	group.Set("params", []string{"p"}, "")
	usage.Blocks = []clusterconfig.Block{group, {Type: "empty"}}
	return doc(usage, agent("b", "b:1", ""), agent("a", "a:1", ""))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func TestTheBytesOfADocumentStayTheSameForEver(t *testing.T) {
	golden(t, "document-1.json", string(rich().Encode())+"\n")
	golden(t, "document-1.digest", rich().Digest().String()+"\n")
	golden(t, "committed-1.json", string(clusterconfig.Commit(rich(), nil, "agg1", time.Unix(1_700_000_000, 0)).Sets[0].Value)+"\n")
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	d, err := clusterconfig.Decode(rich().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if d.Digest() != rich().Digest() {
		t.Errorf("read %s, written %s", d.Encode(), rich().Encode())
	}
	text, err := os.ReadFile("testdata/committed-1.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := clusterconfig.DecodeCommitted(text)
	if err != nil || c.By != "agg1" || c.At.Unix() != 1_700_000_000 || c.Digest != rich().Digest() {
		t.Error(c, err)
	}
}

func TestOrderPlacesAndLayoutDoNotCount(t *testing.T) {
	one := doc(agent("a", "a:1", "x.hcl:1"), agent("b", "b:1", "x.hcl:4"))
	two, err := clusterconfig.Decode([]byte(`{ "blocks": [ {"type":"agent","labels":["b"],"values":{"address":"b\u003a1"}}, {"type":"agent","labels":["a"],"values":{"address": "a:1"}} ], "format": 1 }`))
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() != two.Digest() {
		t.Errorf("%s\n%s", one.Encode(), two.Encode())
	}
	if b := two.Find("agent", "b"); b == nil || b.Name() != `agent "b"` || two.Find("agent", "c") != nil || two.Find("agent") != nil {
		t.Error("blocks are not found by their names", b)
	}
}

func TestWhatIsNoDocumentIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                           "EOF",
		`{"format":2,"blocks":[]}`:   "format version 2, this program knows 1",
		`{"blocks":[]}`:              "format version 0",
		`{"format":1,"bloks":[]}`:    "unknown field",
		`{"format":1,"blocks":[]} x`: "stands behind",
		`{"format":1,"blocks":[{"labels":["a"]}]}`:                                                  "no type",
		`{"format":1,"blocks":[{"type":"a"},{"type":"a"}]}`:                                         "duplicate",
		`{"format":1,"blocks":[{"type":"a","values":{"x":null}}]}`:                                  "null is no value",
		`{"format":1,"blocks":[{"type":"a","blocks":[{"type":"b","labels":["c"],"blocks":[{}]}]}]}`: "no type",
	} {
		if _, err := clusterconfig.Decode([]byte(text)); !errors.Is(err, clusterconfig.ErrDocument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestEveryDifferenceNamesItsBlockAndItsPlace(t *testing.T) {
	list := func(order ...string) clusterconfig.Block {
		b := clusterconfig.Block{Type: "list", At: "a.hcl:30"}
		for _, o := range order {
			b.Blocks = append(b.Blocks, clusterconfig.Block{Type: o, At: "a.hcl:31"})
		}
		return b
	}
	more := agent("same", "s:1", "a.hcl:1")
	more.Set("weight", 3, "a.hcl:2")
	none := doc()
	for name, c := range map[string]struct {
		files, cluster *clusterconfig.Document
		want           []string
	}{
		"nothing":        {none, none, nil},
		"equal":          {rich(), rich(), nil},
		"other places":   {doc(agent("a", "a:1", "x:1")), doc(agent("a", "a:1", "")), nil},
		"nothing yet":    {doc(agent("a", "a:1", "a.hcl:7")), nil, []string{`a.hcl:7: agent "a" stands in these files only: address = "a:1"`}},
		"value":          {doc(agent("a", "a:1", "a.hcl:7")), doc(agent("a", "a:2", "")), []string{`a.hcl:7: agent "a" has address = "a:1" in these files and "a:2" in the cluster`}},
		"only here":      {doc(more), doc(agent("same", "s:1", "")), []string{`a.hcl:2: agent "same" has weight = 3 in these files and nothing in the cluster`}},
		"only there":     {doc(agent("same", "s:1", "a.hcl:1")), doc(more), []string{`a.hcl:1: agent "same" has weight = nothing in these files and 3 in the cluster`}},
		"blocks":         {doc(agent("a", "a:1", "a.hcl:1"), agent("c", "c:1", "a.hcl:9")), doc(agent("b", "b:1", ""), agent("c", "c:1", "")), []string{`a.hcl:1: agent "a" stands in these files only: address = "a:1"`, `agent "b" stands in the cluster's configuration only: address = "b:1"`}},
		"inner":          {doc(list("x", "y")), doc(list("x")), []string{`a.hcl:31: list y stands in these files only: empty`}},
		"order of inner": {doc(list("x", "y")), doc(list("y", "x")), []string{"a.hcl:30: list has its blocks in another order than in the cluster"}},
	} {
		var got []string
		for _, d := range clusterconfig.Diff(c.files, c.cluster) {
			got = append(got, d.String())
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(rich().Encode())
	f.Add([]byte(`{"format":1,"blocks":[{"type":"a","values":{"x":{"b":1e400,"a":[]}}}]}`))
	f.Add(clusterconfig.Commit(rich(), nil, "agg1", time.Unix(0, 0)).Sets[0].Value)
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := clusterconfig.DecodeCommitted(text); err == nil {
			again, err := clusterconfig.DecodeCommitted(clusterconfig.Commit(c.Document, nil, c.By, c.At).Sets[0].Value)
			if err != nil || again.Digest != c.Digest {
				t.Fatalf("%s: %v", text, err)
			}
		}
		d, err := clusterconfig.Decode(text)
		if err != nil {
			return
		}
		again, err := clusterconfig.Decode(d.Encode())
		if err != nil || again.Digest() != d.Digest() || len(clusterconfig.Diff(again, d)) > 0 {
			t.Fatalf("%s becomes %s: %v", text, d.Encode(), err)
		}
	})
}
