package cluster

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

var update = flag.Bool("update", false, "write the golden files of the present formats")

const goldenFile = "testdata/formats-1.golden"

func goldenEntry() *raft.Log {
	return &raft.Log{Index: 7, Term: 3, Type: raft.LogCommand, Data: []byte("command")}
}

func goldenOrder() order {
	return order{Format: orderFormat, SHA256: strings.Repeat("0f", 32), Size: 1234}
}

func goldenInstall(t *testing.T) *raft.Log {
	t.Helper()
	data, err := goldenOrder().encodeOrder()
	if err != nil {
		t.Fatal(err)
	}
	return &raft.Log{Index: 8, Term: 3, Type: raft.LogCommand, Data: data, Extensions: unsealedCommand(entryInstall)}
}

// goldens has the bytes of what a node keeps and sends, by name.
func goldens(t *testing.T) map[string][]byte {
	t.Helper()
	entry := goldenEntry()
	sealEntry(entry)
	path := filepath.Join(t.TempDir(), "f")
	file := func(body any) []byte {
		b, err := func() ([]byte, error) {
			if err := writeSealed(path, body); err != nil {
				return nil, err
			}
			return os.ReadFile(path)
		}()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	install := goldenInstall(t)
	sealEntry(install)
	_, image := imageDir(t, map[string]string{"x": "1234567", "y/z": "8"})
	return map[string][]byte{"entry": entry.Extensions, "vote": sealVote([]byte("CurrentTerm"), []byte{0, 0, 0, 9}),
		"node.id": file(identity{ID: "an id"}), "raft.generation": file(marker{Node: "an id", Generation: 2}), "image": image,
		"install": install.Extensions, "order": install.Data,
		"greeting": greeting{use: forRaft, meant: "an-id", from: "another"}.encodeGreeting(),
		"answer":   answer{what: answerOther, id: "an-id"}.encodeAnswer(),
		planFile:   file(plan{From: "an id", To: "another", Addr: "a:1", Index: 9, Term: 4})}
}

func TestFormatsAreThoseThatWereReleased(t *testing.T) {
	got := goldens(t)
	if *update {
		writeGoldens(t, got)
	}
	want := readGoldens(t)
	if len(want) != len(got) {
		t.Errorf("%d formats, %d in the golden file", len(got), len(want))
	}
	for name := range got {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s\ngot  %q\nwant %q", name, got[name], want[name])
		}
	}
}

func TestWhatWasReleasedIsRead(t *testing.T) {
	old := readGoldens(t)
	entry := goldenEntry()
	entry.Extensions = old["entry"]
	if err := verifyEntry(entry); err != nil {
		t.Error(err)
	}
	if v, err := openVote([]byte("CurrentTerm"), old["vote"]); err != nil || !bytes.Equal(v, []byte{0, 0, 0, 9}) {
		t.Error(v, err)
	}
	var id identity
	if err := openSealed("node.id", old["node.id"], &id); err != nil || id.ID != "an id" {
		t.Error(id, err)
	}
	var m marker
	if err := openSealed("raft.generation", old["raft.generation"], &m); err != nil || m != (marker{"an id", 2}) {
		t.Error(m, err)
	}
	install := goldenInstall(t)
	install.Extensions, install.Data = old["install"], old["order"]
	if o, err := readOrder(install.Data); err != nil || verifyEntry(install) != nil || o != goldenOrder() {
		t.Error(o, err)
	}
	if g, err := readGreeting(bytes.NewReader(old["greeting"])); err != nil || g != (greeting{forRaft, "an-id", "another"}) {
		t.Error(g, err)
	}
	if a, err := readAnswer(bytes.NewReader(old["answer"])); err != nil || a != (answer{answerOther, "an-id"}) {
		t.Error(a, err)
	}
	var p plan
	if err := openSealed(planFile, old[planFile], &p); err != nil || p != (plan{"an id", "another", "a:1", 9, 4}) {
		t.Error(p, err)
	}
	if meta, err := readImage(bytes.NewReader(old["image"]), nil); err != nil || meta.Applied != 12 || meta.Term != 3 {
		t.Error(meta, err)
	}
}

func writeGoldens(t *testing.T, list map[string][]byte) {
	t.Helper()
	var text strings.Builder
	for _, name := range []string{"entry", "vote", "node.id", "raft.generation", "image", "install", "order", "greeting", "answer", planFile} {
		fmt.Fprintf(&text, "%s\t%s\n", name, hex.EncodeToString(list[name]))
	}
	if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(goldenFile, []byte(text.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func readGoldens(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if list[name], err = hex.DecodeString(value); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
