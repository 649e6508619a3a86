package accounting

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func fact(t testing.TB, label string, at record.Time, rows ...wire.DirectoryRow) store.Fact {
	t.Helper()
	data := wire.AppendFrame(nil, &wire.Frame{Kind: wire.KindDirectory, SourceType: "slurm", SourceLabel: label, Directory: wire.Directory{Rows: rows}})
	return store.Fact{Kind: store.FactDirectory, Source: record.Origin{Agent: "head1", Type: "slurm", Label: label}, At: at, Data: data}
}

func TestOfWhatSourcesTellTheNewestCountsAndTheConfigurationBeforeIt(t *testing.T) {
	row := func(user, name, group string) wire.DirectoryRow {
		return wire.DirectoryRow{User: user, Name: name, Groups: []string{group, "users"}, Address: user + "@example.org"}
	}
	told, err := PeopleOf([]store.Fact{
		fact(t, "a", 5, row("ann", "Ann of old", "old"), row("bob", "Bob", "b"), row("eve", "Eve", "e")),
		fact(t, "b", 9, row("ann", "Ann", "new"), row("", "Nobody", "x"), row(strings.Repeat("x", 300), "", "x")),
	})
	if err != nil {
		t.Fatal(err)
	}
	d := made(t, DirectorySettings{People: []Person{{ID: "bob", Name: "Robert", Groups: []Groups{{From: 100, Names: []string{"c"}}}}}}, told...)
	for user, want := range map[string][3]string{"ann": {"Ann", "ann@example.org", "new"}, "bob": {"Robert", "bob@example.org", ""}, "eve": {"Eve", "eve@example.org", "e"}} {
		name, address := d.Name(user)
		group, _ := d.Group(user, 50)
		if got := [3]string{name, address, group}; got != want {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
	if n := len(d.People()); n != 3 {
		t.Error(d.People())
	}
}

func FuzzTell(f *testing.F) {
	f.Add(fact(f, "a", 1, wire.DirectoryRow{User: "ann", Groups: []string{"g"}}).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		told, err := PeopleOf([]store.Fact{{Data: data}})
		if err != nil {
			return
		}
		d := made(t, DirectorySettings{Projects: []Project{project("p", "bell", "g")}}, told...)
		for _, user := range d.People() {
			d.Project(user, "", 0)
		}
	})
}
