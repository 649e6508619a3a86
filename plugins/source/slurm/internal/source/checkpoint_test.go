package source

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
)

func TestTheCheckpointOfTheFirstReleaseIsUnderstood(t *testing.T) {
	got, err := decodeCheckpoint([]byte(`{"v":1,"done":1795248797,"open":[["rig",7,1795248790,1795248791,"5_7",true]]}`))
	want := checkpoint{Done: time.Unix(1795248797, 0).UTC(),
		Open: []openRun{{job.Key{Cluster: "rig", Raw: 7, Submit: 1795248790}, 1795248791, "5_7", true}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestTheCheckpointIsWrittenAsItIsKept(t *testing.T) {
	c := checkpoint{Done: time.Unix(1795248797, 0), Told: facts.Told{Capacity: "8d3a", Directory: "77f0"},
		Open: []openRun{{job.Key{Cluster: "rig", Raw: 7, Submit: 1795248790}, 1795248791, "5_7", true}},
		Half: []halfRun{{job.Key{Cluster: "rig", Raw: 11, Submit: 1795248790}, 1795248799, "11-1795248790"}}}
	want := `{"v":1,"done":1795248797,"open":[["rig",7,1795248790,1795248791,"5_7",true]],"half":[["rig",11,1795248790,1795248799,"11-1795248790"]],"told":{"capacity":"8d3a","directory":"77f0"}}`
	if got := string(c.encodeCheckpoint()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCheckpointsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := checkpoint{Done: time.Unix(rapid.Int64Range(0, maxDone).Draw(t, "done"), 0).UTC(),
			Told: facts.Told{Capacity: rapid.SampledFrom([]string{"", "c"}).Draw(t, "capacity"), Directory: rapid.SampledFrom([]string{"", "d"}).Draw(t, "directory")}}
		raw := int64(0)
		for range rapid.IntRange(0, 5).Draw(t, "open") {
			raw++
			c.Open = append(c.Open, openRun{job.Key{Cluster: rapid.SampledFrom([]string{"", "a", "<b>"}).Draw(t, "cluster"), Raw: raw,
				Submit: rapid.Int64Range(0, 1<<40).Draw(t, "submit")}, 100 - raw, "7", rapid.Bool().Draw(t, "later")})
		}
		for range rapid.IntRange(0, 5).Draw(t, "half") {
			raw++
			c.Half = append(c.Half, halfRun{job.Key{Cluster: rapid.SampledFrom([]string{"", "a"}).Draw(t, "cluster"), Raw: raw,
				Submit: rapid.Int64Range(0, 1<<40).Draw(t, "submit")}, 100 - raw, "7"})
		}
		got, err := decodeCheckpoint(c.encodeCheckpoint())
		if diff := cmp.Diff(c, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func TestACheckpointIsBoundedAndKeepsTheYoungestOpenRuns(t *testing.T) {
	c := checkpoint{Done: time.Unix(1, 0)}
	for i := range int64(maxOpen + 100) {
		c.Open = append(c.Open, openRun{Key: job.Key{Cluster: "cluster", Raw: i}, Start: i, JobID: "1234567"})
	}
	for i := range int64(maxHalf) {
		c.Half = append(c.Half, halfRun{Key: job.Key{Cluster: "cluster", Raw: i}, Since: i, Name: "1234567"})
	}
	b := c.encodeCheckpoint()
	got, err := decodeCheckpoint(b)
	if len(got.Half) < 500 || got.Half[0].Since != maxHalf-1 {
		t.Errorf("%d half runs", len(got.Half))
	}
	if err != nil || len(got.Open) < maxOpen/2 || got.Open[0].Start != maxOpen+99 || len(b) > maxOpenBytes+maxHalfBytes+1<<10 {
		t.Errorf("%d runs in %d bytes, %v", len(got.Open), len(b), err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"v":1,"done":1795248797,"open":[["rig",7,1795248790,1795248791,"5_7",true]],"half":[["rig",11,1795248790,1795248799,"11"]],"told":{"capacity":"8d3a"}}`))
	f.Add([]byte(`{"v":1,"done":0,"open":[[]]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCheckpoint(b)
		if err != nil || c.Done.IsZero() {
			return
		}
		again, err := decodeCheckpoint(c.encodeCheckpoint())
		if err != nil || !again.Done.Equal(c.Done) || (len(again.Open) != len(c.Open) && len(c.Open) <= maxOpen && len(b) < maxOpenBytes) {
			t.Errorf("%s became %s, %v", b, bytes.TrimSpace(c.encodeCheckpoint()), err)
		}
	})
}
