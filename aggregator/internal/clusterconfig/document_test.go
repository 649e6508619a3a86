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
	"github.com/bursar-accounting/bursar/hcl"
)

var update = flag.Bool("update", false, "rewrite golden files")

// doc is a document as files give it, with an agent for each name and address.
func doc(agents ...string) *clusterconfig.Document {
	var set struct {
		Agents []member `hcl:"agent,block"`
	}
	for i := 0; i+1 < len(agents); i += 2 {
		at := hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 1}}
		set.Agents = append(set.Agents, member{Name: agents[i], Address: hcl.String{Value: agents[i+1], Range: at}, Range: at})
	}
	return &clusterconfig.Document{Settings: hcl.EncodeJSON(&set), Written: hcl.Members(&set)}
}

type member struct {
	Name    string     `hcl:"name,label"`
	Address hcl.String `hcl:"address"`
	Range   hcl.Range  `hcl:",def_range"`
}

// rich is a document with everything that a document may hold.
func rich() *clusterconfig.Document {
	d, err := clusterconfig.Decode([]byte(`{"format":3,"settings":{"usage":{"limit":12,"dimensions":["site_id","user_id"],"prices":{"Cores":1.50,"<&>":true}},"agent":[{"name":"a","address":"a:1"}]}}`))
	if err != nil {
		panic(err)
	}
	return d
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
	golden(t, "document-3.json", string(rich().Encode())+"\n")
	golden(t, "document-3.digest", rich().Digest().String()+"\n")
	golden(t, "committed-3.json", string(clusterconfig.Commit(rich(), nil, "agg1", time.Unix(1_700_000_000, 0)).Sets[0].Value)+"\n")
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	d, err := clusterconfig.Decode(rich().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if d.Digest() != rich().Digest() {
		t.Errorf("read %s, written %s", d.Encode(), rich().Encode())
	}
	text, err := os.ReadFile("testdata/committed-3.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := clusterconfig.DecodeCommitted(text)
	if err != nil || c.By != "agg1" || c.At.Unix() != 1_700_000_000 || c.Digest != rich().Digest() {
		t.Error(c, err)
	}
}

func TestPlacesAndLayoutDoNotCount(t *testing.T) {
	one := doc("a", "a:1", "b", "b:1")
	two, err := clusterconfig.Decode([]byte(`{ "settings": {"agent": [ {"address": "a\u003a1","name":"a"}, {"name":"b", "address":"b:1"} ]}, "format": 3 }`))
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() != two.Digest() {
		t.Errorf("%s\n%s", one.Encode(), two.Encode())
	}
}

func TestWhatIsNoDocumentIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                             "EOF",
		`{"format":2,"settings":{}}`:   "format version 2, this program knows 3",
		`{"format":4,"settings":{}}`:   "format version 4",
		`{"settings":{}}`:              "format version 0",
		`{"format":3}`:                 "EOF",
		`{"format":3,"settings":[]}`:   "array",
		`{"format":3,"settings":null}`: "null",
		`{"format":1,"blocks":[]}`:     "format version 1, this program knows 3",
		`{"format":3,"setings":{}}`:    "unknown field",
		`{"format":3,"settings":{}} x`: "stands behind",
	} {
		if _, err := clusterconfig.Decode([]byte(text)); !errors.Is(err, clusterconfig.ErrDocument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestEveryDifferenceNamesItsBlockAndItsPlace(t *testing.T) {
	at := func(line int) hcl.Range { return hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: line}} }
	value := func(name, text string, line int) hcl.Member {
		return hcl.Member{Name: name, Value: []byte(text), Range: at(line)}
	}
	block := func(line int, header string, members ...hcl.Member) hcl.Member {
		words := strings.Fields(header)
		return hcl.Member{Name: words[0], Labels: words[1:], Members: members, Range: at(line)}
	}
	type list = []hcl.Member
	same := value("address", `"s:1"`, 1)
	for name, c := range map[string]struct {
		files, cluster list
		want           []string
	}{
		"nothing":        {},
		"other places":   {list{block(1, "agent a", value("address", `"a:1"`, 1))}, list{block(2, "agent a", value("address", `"a:1"`, 2))}, nil},
		"nothing yet":    {list{block(7, "agent a", value("address", `"a:1"`, 8))}, nil, []string{`a.hcl:7: agent "a" stands in these files only: address = "a:1"`}},
		"value":          {list{block(7, "agent a", value("address", `"a:1"`, 8))}, list{block(0, "agent a", value("address", `"a:2"`, 0))}, []string{`a.hcl:8: agent "a" has address = "a:1" in these files and "a:2" in the cluster`}},
		"only here":      {list{block(1, "agent same", same, value("weight", "3", 2))}, list{block(0, "agent same", same)}, []string{`a.hcl:2: agent "same" has weight = 3 in these files and nothing in the cluster`}},
		"only there":     {list{block(1, "agent same", same)}, list{block(0, "agent same", same, value("weight", "3", 0))}, []string{`a.hcl:1: agent "same" has weight = nothing in these files and 3 in the cluster`}},
		"blocks":         {list{block(1, "agent a", value("address", `"a:1"`, 2)), block(9, "agent c")}, list{block(0, "agent b", value("address", `"b:1"`, 0)), block(0, "agent c")}, []string{`a.hcl:1: agent "a" stands in these files only: address = "a:1"`, `agent "b" stands in the cluster's configuration only: address = "b:1"`}},
		"inner":          {list{block(1, "list", block(2, "x"), block(3, "y"))}, list{block(0, "list", block(0, "x"))}, []string{`a.hcl:3: list y stands in these files only: empty`}},
		"order of inner": {list{block(1, "list", block(2, "x"), block(3, "y"))}, list{block(0, "list", block(0, "y"), block(0, "x"))}, []string{"a.hcl:1: list has its blocks in another order than in the cluster"}},
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
		if err != nil || again.Digest() != d.Digest() {
			t.Fatalf("%s becomes %s: %v", text, d.Encode(), err)
		}
	})
}
