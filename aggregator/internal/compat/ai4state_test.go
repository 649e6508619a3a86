package compat

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// worldOf is what records tell.
func worldOf(t *testing.T, records string) *ai4World {
	t.Helper()
	var list []v1.FullRecord
	if err := json.Unmarshal([]byte(records), &list); err != nil {
		t.Fatal(err)
	}
	b := ai4Builder{world: &ai4World{}, jobs: map[string]*ai4Job{}, allocations: map[string]*allocation{}}
	for i := range list {
		b.addRecord(&list[i])
	}
	b.finishJobs()
	return b.world
}

// listed is what snapshots of a day say of the jobs of records: a letter for each hour.
func listed(t *testing.T, records string) string {
	t.Helper()
	var out strings.Builder
	for _, j := range worldOf(t, records).jobs {
		for hour := range 24 {
			state, _, _ := j.stateAt(time.Date(2026, 3, 1, hour, 0, 30, 0, time.UTC))
			out.WriteByte(".SQRD"[state])
		}
	}
	return out.String()
}

// A run of which an import knows sightings alone counts in each of them, and in no
// snapshot besides, wherever within the first half minute the clock of snapshots stood.
func TestAI4_RunKnownBySightings_CountsInEachOfThem(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for range 500 {
		apart := time.Duration(1+random.IntN(8)) * time.Hour
		var taken []time.Time
		for at := midnight; at.Before(midnight.AddDate(0, 0, 3)); at = at.Add(apart) {
			taken = append(taken, at.Add(time.Duration(random.IntN(31))*time.Second))
		}
		first := random.IntN(len(taken))
		last := first + random.IntN(len(taken)-first)
		start := midnight.AddDate(0, 0, -1)
		if first > 0 {
			start = taken[first-1].Add(31 * time.Second)
		}
		text := fmt.Sprintf(`[{"record_id":"a-main@1","meta":{"namespace":["n"],"job":["tool"],"user_id":["u"],"estimated":["true"]},"components":[],"state":"running","start_time":%q,"stop_time":%q}]`,
			start.Format(time.RFC3339), taken[last].Format(time.RFC3339))
		j := worldOf(t, text).jobs[0]
		even := make([]time.Time, len(taken))
		for i := range even {
			even[i] = midnight.Add(time.Duration(i)*apart + ai4Offset)
		}
		for name, times := range map[string][]time.Time{"as they were": taken, "at even times": even} {
			for i, at := range times {
				state, _, _ := j.stateAt(at)
				if runs := i >= first && i <= last; runs != (state == ai4Running) || i > last && state != ai4Gone {
					t.Fatalf("snapshots %s: number %d of %d says %d of a run that was seen by %d to %d: %s", name, i, len(taken), state, first, last, text)
				}
			}
		}
	}
}

// ran is a record of the job module-a.
func ran(id, submit, allocated, start, stop string) string {
	at := func(clock string) string {
		if clock == "" {
			return "null"
		}
		return `"2026-03-01T` + clock + `:00Z"`
	}
	meta := ""
	if allocated != "" {
		meta = `,"allocated":[` + at(allocated) + `]`
	}
	return fmt.Sprintf(`{"record_id":"cloud-%s","meta":{"namespace":["imagine"],"job":["module-a"],"user_id":["u"]%s},"components":[],"start_time":%s,"stop_time":%s,"submit_time":%s}`, id, meta, at(start), at(stop), at(submit))
}

func TestASnapshotSaysOfAJobWhatNomadWouldHaveListed(t *testing.T) {
	for name, c := range map[string]struct{ records, want string }{
		"waits, starts, runs, and is listed for four hours":          {ran("1-main", "02:00", "04:00", "07:00", "10:00"), "..QQSSSRRRDDDD.........."},
		"waits until it starts where nobody says when it was placed": {ran("1-main", "02:00", "", "07:00", "10:00"), "..QQQQQRRRDDDD.........."},
		"goes on":                          {ran("1-main", "02:00", "02:00", "03:00", ""), "..SRRRRRRRRRRRRRRRRRRRRR"},
		"starts again in its allocation":   {ran("1-main", "02:00", "02:00", "02:00", "05:00") + "," + ran("1-main@1772370000000", "02:00", "02:00", "07:00", "08:00"), "..RRRSSRDDDD............"},
		"is placed anew":                   {ran("1-main", "02:00", "02:00", "02:00", "05:00") + "," + ran("2-main", "02:00", "07:00", "08:00", "09:00"), "..RRRDDSRDDDD..........."},
		"is submitted anew under its name": {ran("1-main", "00:00", "00:00", "00:00", "02:00") + "," + ran("2-main", "10:00", "12:00", "12:00", "13:00"), "RRDDDD....QQRDDDD......."},
		"was last seen at five":            {strings.Replace(ran("1-main", "02:00", "02:00", "02:00", "05:00"), `"user_id"`, `"estimated":["true"],"user_id"`, 1), "..RRRDDDD..............."},
		"was last seen running at five":    {strings.Replace(ran("1-main", "02:00", "02:00", "02:00", "05:00"), `"meta":{`, `"state":"running","meta":{"estimated":["true"],`, 1), "..RRRR.................."},
		"is known to be placed anew":       {strings.Replace(ran("1-main", "02:00", "02:00", "02:00", "05:00"), `"meta":{`, `"state":"running","meta":{"estimated":["true"],`, 1) + "," + ran("2-main", "02:00", "12:00", "12:00", "13:00"), "..RRRRDDDDDDRDDDD......."},
		"has another name":                 {strings.ReplaceAll(ran("1-main", "", "", "02:00", ""), "module-a", "traefik"), ""},
		"has nobody":                       {strings.ReplaceAll(ran("1-main", "", "", "02:00", ""), `,"user_id":["u"]`, ""), ""},
		"is a helper's":                    {strings.ReplaceAll(ran("1-main", "", "", "02:00", ""), `"user_id":["u"]`, `"user_id":["u"],"task":["log"]`), ""},
	} {
		if got := listed(t, "["+c.records+"]"); got != c.want {
			t.Errorf("a job that %s: %q, want %q", name, got, c.want)
		}
	}
}

func TestHalvesAreRoundedToEvenNumbers(t *testing.T) {
	for _, c := range [][3]int64{{1, 2, 0}, {3, 2, 2}, {5, 2, 2}, {7, 3, 2}, {8, 3, 3}, {0, 1, 0}, {1017, 2, 508}, {508501, 1000, 509}} {
		if got := roundHalfEven(big.NewRat(c[0], c[1])); got != c[2] {
			t.Errorf("%d/%d is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestAI4_LimitedPrincipal_GetsAnError(t *testing.T) {
	c := apitest.Recorded(t, apitest.RecordedByNomad)
	c.Principal = access.Principal{Name: "u1", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"u1"}})}
	o := AI4Options{Period: threeDays, Now: apitest.RecordedNow()}
	if _, err := AI4(t.Context(), v1.API{Caller: c}, o); err == nil || !strings.Contains(err.Error(), "some records only") {
		t.Error(err)
	}
	if _, err := AI4Usage(t.Context(), v1.API{Caller: c}, o); err == nil || !strings.Contains(err.Error(), "some records only") {
		t.Error(err)
	}
}

// Jobs that wait in snapshots count as queued in these, unless records know them.
func TestAI4_JobsThatNeverRan_WaitInTheSnapshotsThatShowThem(t *testing.T) {
	random := rand.New(rand.NewPCG(26, 4))
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	ran := `[{"record_id":"a-main","meta":{"namespace":["n"],"job":["tool-ran"],"user_id":["u"]},"components":[],"state":"complete","start_time":"2026-02-27T00:00:00Z","stop_time":"2026-02-27T01:00:00Z"}]`
	for range 100 {
		w := worldOf(t, ran)
		w.namespaces = []string{"n"}
		waiting, jobs, shown := map[time.Time][]AI4Waiting{}, int64(0), int64(0)
		for hour := range 24 {
			at := midnight.Add(time.Duration(hour) * time.Hour)
			w.instants = append(w.instants, at)
			never := random.Int64N(4)
			for k := range never {
				waiting[at] = append(waiting[at], AI4Waiting{"n", fmt.Sprintf("module-%d", k), "v"})
			}
			for _, other := range []AI4Waiting{{"n", "tool-ran", "u"}, {"n", "traefik", "v"}, {"n", "tool-x", ""}, {"default", "tool-x", "v"}} {
				if random.IntN(3) == 0 {
					waiting[at] = append(waiting[at], other)
				}
			}
			if never > 0 {
				jobs, shown = jobs+never, shown+1
			}
		}
		w.waiting = w.unrecordedWaiting(waiting)
		d := w.takeSnapshots().series["n"]["2026-03-01"]
		if want := (level{jobs, shown}); d == nil || d.queued != want {
			t.Fatalf("queued %+v, want %+v", d, want)
		}
	}
}
