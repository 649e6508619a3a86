package month_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
)

var august = month.Month{Year: 2026, Month: time.August}

func TestMonthsAreThoseOfUTC(t *testing.T) {
	east := time.FixedZone("", 5*3600)
	for at, want := range map[time.Time]string{
		time.Date(2026, 9, 1, 4, 59, 59, 0, east):            "2026-08",
		time.Date(2026, 9, 1, 5, 0, 0, 0, east):              "2026-09",
		time.Date(2026, 12, 31, 23, 59, 59, 999e6, time.UTC): "2026-12",
	} {
		if got := month.Of(at).String(); got != want {
			t.Errorf("%s is in %s, want %s", at, got, want)
		}
	}
	if m, err := month.Parse("2026-12"); err != nil || m.Add(1).String() != "2027-01" || !m.Before(m.Add(1)) || m.End() != time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) {
		t.Error(m, err)
	}
	for _, bad := range []string{"", "2026", "2026-13", "08-2026", "2026-08-01"} {
		if _, err := month.Parse(bad); err == nil {
			t.Errorf("%q is a month", bad)
		}
	}
	if all := august.Through(august.Add(5)); len(all) != 6 || all[5].String() != "2027-01" {
		t.Error(all)
	}
	if all := august.Add(1).Through(august); len(all) != 0 {
		t.Error(all)
	}
}

func TestNormalisingRoundsHalfToEven(t *testing.T) {
	for _, c := range []struct {
		seconds int64
		score   float64
		want    int64
	}{{1, 0.5, 0}, {3, 0.5, 2}, {5, 0.5, 2}, {7, 0.5, 4}, {11617, 10, 116170}, {3600, 21.53, 77508}, {0, 9, 0}} {
		if got, err := month.Normalise(c.seconds, c.score); got != c.want || err != nil {
			t.Errorf("%d × %v is %d (%v), want %d", c.seconds, c.score, got, err, c.want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		if _, err := month.Normalise(10, bad); err == nil {
			t.Errorf("the score %v is accepted", bad)
		}
	}
}

func job(vo, host string, cores, wall int64, end time.Time) *month.Job {
	return &month.Job{
		Job:            message.Job{VO: vo, SubmitHost: host, Processors: cores, WallDuration: wall, CPUDuration: wall / 2, EndTime: end.Unix()},
		NormalisedWall: []message.Amount{{Benchmark: "HEPscore23", Value: wall * 10}},
		NormalisedCPU:  []message.Amount{{Benchmark: "HEPscore23", Value: wall * 5}},
	}
}

func TestJobsAreGroupedByTheReceiversKey(t *testing.T) {
	s := month.New("UNI", august)
	first, last := august.Start(), august.End().Add(-time.Second)
	pilot := job("atlas", "ce1", 8, 100, first)
	pilot.VORole = "pilot"
	for _, j := range []*month.Job{
		job("atlas", "ce1", 8, 100, last), job("atlas", "ce1", 8, 200, first), job("atlas", "ce1", 1, 300, first),
		job("atlas", "ce2", 8, 400, first), job("cms", "ce1", 8, 500, first), pilot,
	} {
		if err := s.Add(j); err != nil {
			t.Fatal(err)
		}
	}
	rows := s.Summaries()
	if len(rows) != 5 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	got := rows[slices.IndexFunc(rows, func(r message.Summary) bool { return r.NumberOfJobs == 2 })]
	if got.WallDuration != 300 || got.CPUDuration != 150 || got.EarliestEndTime != first.Unix() || got.LatestEndTime != last.Unix() ||
		got.NormalisedWallDuration[0].Value != 3000 || got.NormalisedCPUDuration[0].Value != 1500 {
		t.Errorf("%+v", got)
	}
	if syncs := s.Syncs(); len(syncs) != 2 || syncs[0].NumberOfJobs != 5 || syncs[1].SubmitHost != "ce2" || syncs[1].NumberOfJobs != 1 {
		t.Errorf("%+v", syncs)
	}
	if total := s.Total(); total != (month.Total{Records: 6, Jobs: 6, Wall: 1600, CPU: 800}) {
		t.Errorf("%+v", total)
	}
}

func TestAJobThatCannotGoChangesNothing(t *testing.T) {
	s := month.New("UNI", august)
	if err := s.Add(job("atlas", "ce1", 8, 100, august.Start())); err != nil {
		t.Fatal(err)
	}
	before := s.Summaries()
	huge := job("atlas", "ce1", 8, 100, august.Start())
	huge.NormalisedWall[0].Value = math.MaxInt64
	for what, j := range map[string]*month.Job{
		"of the month before":  job("atlas", "ce1", 8, 100, august.Start().Add(-time.Second)),
		"of the month after":   job("atlas", "ce1", 8, 100, august.End()),
		"not ASCII":            job("\u00e4tlas", "ce1", 8, 100, august.Start()),
		"negative":             job("atlas", "ce1", 8, -100, august.Start()),
		"too large for a sum":  huge,
		"too large for totals": job("atlas", "ce1", 9, math.MaxInt64, august.Start()),
	} {
		if s.Add(j) == nil {
			t.Errorf("a job that is %s is accepted", what)
		}
	}
	if after := s.Summaries(); !reflect.DeepEqual(before, after) || s.Total().Jobs != 1 {
		t.Errorf("%+v became %+v", before, after)
	}
}

// The obvious way: every message goes to a receiver, and its rows are added up.
func TestSumsAreThoseOfTheirJobsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*month.Job
		var wall, count int64
		name := rapid.SampledFrom([]string{"atlas", "ATLAS", "Atlas", "cms", "a b", "", "None", "none", "NULL"})
		for range rapid.IntRange(0, 50).Draw(t, "jobs") {
			end := august.Start().Add(time.Duration(rapid.Int64Range(0, 31*86400-1).Draw(t, "end")) * time.Second)
			j := job(name.Draw(t, "vo"), rapid.SampledFrom([]string{"ce1", "ce2", "CE2"}).Draw(t, "host"),
				rapid.Int64Range(1, 3).Draw(t, "cores"), rapid.Int64Range(0, 1e9).Draw(t, "wall"), end)
			j.GlobalUserName, j.InfrastructureType = name.Draw(t, "user"), name.Draw(t, "infrastructure")
			j.InfrastructureDescription = rapid.StringMatching(`[a-c]{0,2}x{0,48}`).Draw(t, "description")
			jobs, wall, count = append(jobs, j), wall+j.WallDuration, count+1
		}
		one, other := sums(t, jobs), sums(t, rapid.Permutation(jobs).Draw(t, "order"))
		if !reflect.DeepEqual(one.Summaries(), other.Summaries()) || !reflect.DeepEqual(one.Syncs(), other.Syncs()) {
			t.Fatal("the order of the jobs matters")
		}
		receiver := &apeltest.Receiver{}
		take := func(kind message.Kind, records [][]byte) {
			for _, text := range message.Pack(kind, records, 1e4, 10) {
				if err := receiver.Take(string(text), august.End()); err != nil {
					t.Fatal(err)
				}
			}
		}
		var rows, syncs [][]byte
		for _, row := range one.Summaries() {
			rows = append(rows, row.Record())
		}
		for _, row := range one.Syncs() {
			syncs = append(syncs, row.Record())
		}
		take(message.Summaries, rows)
		take(message.Syncs, syncs)
		if len(receiver.Rows("APEL-norm")) != len(rows) || len(receiver.Rows("APEL-sync")) != len(syncs) {
			t.Fatalf("the receiver has %d of %d rows, and %d of %d submit hosts", len(receiver.Rows("APEL-norm")), len(rows), len(receiver.Rows("APEL-sync")), len(syncs))
		}
		if got := receiver.Sum("APEL-norm", "WallDuration"); got != wall || receiver.Sum("APEL-norm", "NumberOfJobs") != count || receiver.Sum("APEL-sync", "NumberOfJobs") != count {
			t.Fatalf("%d seconds, want %d; %d jobs, %d by the sync, want %d", got, wall, receiver.Sum("APEL-norm", "NumberOfJobs"), receiver.Sum("APEL-sync", "NumberOfJobs"), count)
		}
	})
}

func sums(t *rapid.T, jobs []*month.Job) *month.Sums {
	s := month.New("UNI", august)
	for _, j := range jobs {
		if err := s.Add(j); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
