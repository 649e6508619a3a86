package buffer_test

import (
	"maps"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestWhichDaysWereCountedSurvivesARestart(t *testing.T) {
	file := path(t)
	b := open(t, file, buffer.Options{})
	other := buffer.Source{Type: "slurm", Label: "nemo2"}
	for _, a := range []buffer.Append{
		{Source: slurm, Audited: []buffer.Audit{{Day: -86_400_000_000, At: 7}, {Day: 0, At: 5}, {Day: 86_400_000_000, At: 6}}},
		{Source: other, Audited: []buffer.Audit{{Day: 0, At: 9}}},
		{Source: slurm, Unaudited: []record.Time{0, 86_400_000_000}, Audited: []buffer.Audit{{Day: 86_400_000_000, At: 8}}},
	} {
		if _, err := b.Append(a); err != nil {
			t.Fatal(err)
		}
	}
	b.Close()
	b = open(t, file, buffer.Options{})
	for source, want := range map[buffer.Source]map[record.Time]record.Time{
		slurm: {-86_400_000_000: 7, 86_400_000_000: 8}, other: {0: 9}, {Type: "slurm", Label: "nem"}: {},
	} {
		if got, err := b.Audits(source); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", source, got, err, want)
		}
	}
}

func TestANewKindOfFrameIsForClustersThatHaveAllSaidThatTheyTakeIt(t *testing.T) {
	file := path(t)
	b := open(t, file, buffer.Options{})
	takes := func(want bool) {
		t.Helper()
		if got, err := b.Takes(2); got != want || err != nil {
			t.Fatalf("takes: %v %v", got, err)
		}
	}
	takes(false) // no one is known
	resume(t, b, "a", buffer.Position{})
	takes(false)
	say := func(cluster string, version uint32) {
		t.Helper()
		if err := b.SetVersion(cluster, version); err != nil {
			t.Fatal(err)
		}
	}
	say("a", 2)
	takes(true)
	resume(t, b, "old", buffer.Position{})
	say("old", 1)
	takes(false)
	say("old", 3)
	takes(true)
	b.Close()
	b = open(t, file, buffer.Options{})
	takes(true)
	resume(t, b, "new", buffer.Position{})
	takes(false)
	if err := b.Forget("new"); err != nil {
		t.Fatal(err)
	}
	takes(true)
}
