package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

var goldenPage = peerFileBody{
	Node:     "id-a",
	Promises: Promises{Held: Promise{Founder: "id-a", Round: 3, Nodes: []Listed{{"a", "id-a", "a:1"}, {"b", "id-b", "b:1"}}}, Rounds: 3},
	Nodes:    []Listed{{"a", "id-a", "a:1"}},
}

const goldenPeerFile = `{"format":1,"crc32c":2472145993,"body":{"node":"id-a","oath":{"held":{"founder":"id-a","round":3,"nodes":[{"name":"a","id":"id-a","addr":"a:1"},{"name":"b","id":"id-b","addr":"b:1"}]},"rounds":3},"nodes":[{"name":"a","id":"id-a","addr":"a:1"}]}}`

func TestTheFormatOfTheBookStays(t *testing.T) {
	raw, err := encodePeerFile(goldenPage)
	if err != nil || string(raw) != goldenPeerFile {
		t.Errorf("%v\n%s", err, raw)
	}
	if page, err := decodePeerFile([]byte(goldenPeerFile)); err != nil || !reflect.DeepEqual(page, goldenPage) {
		t.Errorf("%+v %v", page, err)
	}
}

func TestTheBookKeepsPromisesAndNamesOverARestart(t *testing.T) {
	dir := t.TempDir()
	b, err := OpenPeerFile(dir, "id-a")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SavePromises(goldenPage.Promises); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Listed{{"b", "id-b", "b:1"}, {"a", "id-a", "a:1"}, {"b", "id-b2", "b:1"}, {"b", "id-b2", "b:1"}} {
		if err := b.SaveNode(n); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenPeerFile(dir, "id-a")
	if err != nil || !reflect.DeepEqual(again.Promises(), goldenPage.Promises) || !reflect.DeepEqual(again.Nodes(), []Listed{{"a", "id-a", "a:1"}, {"b", "id-b2", "b:1"}}) {
		t.Errorf("%+v %v", again, err)
	}
	if other, err := OpenPeerFile(dir, "id-x"); err != nil || !other.Promises().Held.None() {
		t.Errorf("the file of another id: %+v %v", other, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}

func TestADamagedBookStopsTheStart(t *testing.T) {
	for _, raw := range []string{"", "{}", `{"format":2}`, string(bytes.Replace([]byte(goldenPeerFile), []byte(`"round":3`), []byte(`"round":4`), 1)), goldenPeerFile[:80]} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, peerFileName), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenPeerFile(dir, "id-a"); !errors.Is(err, ErrPeerFile) {
			t.Errorf("%.30q: %v", raw, err)
		}
	}
}

func FuzzBook(f *testing.F) {
	f.Add([]byte(goldenPeerFile))
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, err := decodePeerFile(raw)
		if err != nil {
			return
		}
		once, err := encodePeerFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodePeerFile(once); err != nil {
			t.Fatalf("%+v: %v", again, err)
		}
	})
}

func someFact() NodeFact {
	f := NodeFact{
		Name: "agg1", ID: "id", Addr: "a:1", Version: "v1", CommandVersion: 1, Cluster: "c", Fresh: true, Waits: "w", Leads: true, Term: 2,
		Applied: 3, Command: 4, HashIndex: 5, Hash: store.Hash{Hi: 6, Lo: 7}, Clock: time.UnixMicro(8).UTC(), Started: time.UnixMicro(9).UTC(),
		DiskFree: 10, DiskSize: 11, ConfigDigest: [32]byte{12}, CertEnds: time.UnixMicro(13).UTC(), Fenced: "f", LogStalled: 14 * time.Millisecond, API: "x",
	}
	f.SetExtra("part", map[string]int{"n": 1})
	return f
}

func TestEveryFactTravels(t *testing.T) {
	want := someFact()
	got, err := factOf(want.factMessage())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	v := reflect.ValueOf(want)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Seen" && name != "RoundTrip" && name != "Unreached" {
			t.Errorf("%s is not tried", name)
		}
	}
}

func TestTheRosterKeepsTheNewestOfEachNode(t *testing.T) {
	r := NewRoster(func() NodeFact { return NodeFact{Name: "b", ID: "me"} })
	r.Hear(NodeFact{Name: "c", ID: "old"})
	r.Hear(NodeFact{Name: "c", ID: "new"})
	r.Hear(NodeFact{Name: "a", ID: "other"})
	all := r.All()
	if len(all) != 3 || all[0].Name != "a" || all[1].ID != "me" || all[2].ID != "new" || all[2].Seen.IsZero() {
		t.Errorf("%+v", all)
	}
	r.Miss("new")
	if f, ok := r.ByID("new"); !ok || !f.Unreached {
		t.Errorf("%+v", f)
	}
	r.Hear(NodeFact{Name: "c", ID: "new"})
	if f, ok := r.ByID("new"); !ok || f.Unreached {
		t.Errorf("%+v", f)
	}
	if _, ok := r.ByID("old"); ok {
		t.Error("the former self of a node is still there")
	}
}

func FuzzFacts(f *testing.F) {
	some := someFact()
	raw, err := proto.Marshal(some.factMessage())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m bursarv1.NodeFacts
		if proto.Unmarshal(raw, &m) != nil {
			return
		}
		fact, err := factOf(&m)
		if err != nil {
			return
		}
		if _, err := json.Marshal(fact.Extra); err != nil {
			t.Fatal(err)
		}
		fact.factMessage()
	})
}
