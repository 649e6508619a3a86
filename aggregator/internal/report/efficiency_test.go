package report_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// efficient is the report of October.
func efficient(t *testing.T, w *apitest.World, o report.EfficiencyOptions) *report.Document {
	t.Helper()
	o.Periods, o.Now = []string{"2026-10"}, now()
	d, err := report.Efficiency(t.Context(), w.API(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reportOfEfficiency(t *testing.T) *report.Document {
	t.Helper()
	return efficient(t, worldOf(t, append(jobsOfCMS(), unnamed())...), report.EfficiencyOptions{Worst: 3})
}

// cells are a row as it stands in CSV.
func cells(row []report.Cell) string {
	var out []string
	for _, c := range row {
		out = append(out, c.String())
	}
	return strings.Join(out, "|")
}

// row finds a line of a table by its first cell.
func row(t *testing.T, d *report.Document, table, first string) string {
	t.Helper()
	for i := range d.Tables {
		for _, r := range d.Tables[i].Rows {
			if d.Tables[i].Name == table && r[0].String() == first {
				return cells(r)
			}
		}
	}
	t.Errorf("there is no line %s in the table %s", first, table)
	return ""
}

func TestWhatCouldBeSavedIsBookedLessUsedOfThoseThatSayBoth(t *testing.T) {
	d := reportOfEfficiency(t)
	for _, c := range []struct{ table, first, want string }{
		{"saving-1", "Cores", "Cores|core-hours|88|35.5|0.403409091|53|1.06212|0.504507"}, // 53 of ann × 0.012 × 1.67, × 0.475; bob used more than he booked
		{"saving-1", "Memory", "Memory|GiB-hours|28|14|0.5|14|0.00870905|0.004136799"},
		{"saving-1", "GPUs", "GPUs|GPU-hours|5|||||"},
		{"cores-1", "ann", "ann|3|85|32|0.376470588|53|1.06212|0.504507"},
		{"cores-1", "<b>bob", "<b>bob|2|3|3.5|1.166666667|0|0|0"},
		{"wait-1", "ann", "ann|3|5|10|20"},
		{"wait-1", "<b>bob", "<b>bob|2|1.5|1.5|2"},
		{"jobs", "a1", "a1|ann|8|10|0.375|50|2|1|COMPLETED"},
		{"jobs", "a2", "a2|ann|4|1|0.25|3|2|1|COMPLETED"},
		{"jobs", "b2", "b2|<b>bob|2|1|0.5|1|2|1|COMPLETED"},
	} {
		if got := row(t, d, c.table, c.first); got != c.want {
			t.Errorf("%s: %s, want %s", c.table, got, c.want)
		}
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"1 of 6 records with Cores do not say how much they used, and 0 that used some do not say how much they booked", "how much of the GPUs was used is not in the records", "10.1002/advs.202100707"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestEfficiency_ByKeysWithCommasAndPairs_HasTheirMedianWait(t *testing.T) {
	jobs := jobsOfCMS()
	for i := range jobs {
		jobs[i].Meta = map[string]string{"a,b": "odd"}
	}
	w := worldOf(t, jobs...)
	for by, want := range map[string]string{"user_id": "ann|3|5|10|20", "group_id,user_id": "cms / ann|3|5|10|20", v1.JoinList("a,b"): "odd|5|5|6.6|20", v1.JoinList("a,b", "user_id"): "odd / ann|3|5|10|20"} {
		first, _, _ := strings.Cut(want, "|")
		if got := row(t, efficient(t, w, report.EfficiencyOptions{By: by}), "wait-1", first); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
}

func TestWhatWasUsedOfNothingBookedIsNotCounted(t *testing.T) {
	used := unnamed()
	used.Cores, used.CPU = 0, 3600
	d := efficient(t, worldOf(t, append(jobsOfCMS(), used)...), report.EfficiencyOptions{})
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "0 of 5 records with Cores do not say how much they used, and 1 that used some do not say how much they booked") {
		t.Error(notes)
	}
	if got := row(t, d, "saving-1", "Cores"); !strings.HasPrefix(got, "Cores|core-hours|88|35.5|0.403409091|") {
		t.Error(got)
	}
}

func TestEfficiency_GPUTime_IsOfJobsThatSayBoth(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var list []record.Record
	booked, used, with, without, odd := map[string]int64{}, map[string]int64{}, 0, 0, 0
	for i := range 40 {
		user, hours := string(rune('a'+r.IntN(3))), 1+r.IntN(20)
		start := time.Date(2026, 10, 2+r.IntN(20), 0, 0, 0, 0, time.UTC)
		j := apitest.Job{ID: fmt.Sprint(i), User: user, Start: start.Format(time.RFC3339), Stop: start.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339), Cores: 1, GPUs: int64(r.IntN(5))}.Record()
		gpus, seconds := int64(0), int64(r.IntN(hours*3600))
		for _, c := range j.Components {
			if c.Name == "GPUs" {
				gpus = c.Amount
			}
		}
		known := i == 0 || r.IntN(3) > 0
		if known {
			j.Components = append(j.Components, record.Component{Name: "TotalGPU", Amount: seconds * int64(r.IntN(2)), Kind: record.Total}) // 0 is known
			seconds = j.Components[len(j.Components)-1].Amount
		}
		switch {
		case gpus > 0 && known:
			booked[user], used[user], with = booked[user]+gpus*int64(hours), used[user]+seconds, with+1
		case gpus > 0:
			with, without = with+1, without+1
		case known:
			odd++
		}
		list = append(list, j)
	}
	w := worldOf(t)
	w.Post(list...)
	d := efficient(t, w, report.EfficiencyOptions{})
	var allBooked, allUsed int64
	for user, hours := range booked {
		allBooked, allUsed = allBooked+hours, allUsed+used[user]
		b, u := big.NewRat(hours, 1), big.NewRat(used[user], 3600)
		want := "|" + cells([]report.Cell{v1.Rat(b), v1.Rat(u), report.Quotient(u, b)}) + "|"
		if got := row(t, d, "gpus-1", user); !strings.Contains(got, want) {
			t.Errorf("seed %d: %s, want %s", seed, got, want)
		}
	}
	b, u := big.NewRat(allBooked, 1), big.NewRat(allUsed, 3600)
	if got, want := row(t, d, "saving-1", "GPUs"), "GPUs|GPU-hours|"+cells([]report.Cell{v1.Rat(b), v1.Rat(u), report.Quotient(u, b)})+"|"; !strings.HasPrefix(got, want) {
		t.Errorf("seed %d: %s, want %s", seed, got, want)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, fmt.Sprintf("%d of %d records with GPUs do not say how much they used, and %d that used", without, with, odd)) {
		t.Errorf("seed %d: %s", seed, notes)
	}
}

func TestEfficiency_GPUMemory_IsShownWhereItIsMeasured(t *testing.T) {
	list := apitest.Records(jobsOfCMS()...)
	if d := efficient(t, worldOf(t, jobsOfCMS()...), report.EfficiencyOptions{}); slices.ContainsFunc(d.Tables, func(t v1.DocumentTable) bool { return t.Name == "gpu_memory-1" }) {
		t.Error("there is a table of GPU memory, of which nothing is known")
	}
	list[0].Components = append(list[0].Components, record.Component{Name: "GPUMemory", Amount: 80 << 10, Kind: record.Rate}, record.Component{Name: "GPUMemoryUsed", Amount: 20 << 10, Kind: record.Rate})
	w := worldOf(t)
	w.Post(list...)
	d := efficient(t, w, report.EfficiencyOptions{MemoryPerGB: 1})
	for _, c := range []struct{ table, first, want string }{
		{"saving-1", "GPU memory", "GPU memory|GiB-hours|800|200|0.25|600||"}, // a1 ran for ten hours
		{"gpu_memory-1", "ann", "ann|1|800|200|0.25|600"},
	} {
		if got := row(t, d, c.table, c.first); got != c.want {
			t.Errorf("%s: %s, want %s", c.table, got, c.want)
		}
	}
}

func TestNumbersThatNoReportCanBeMadeWithAreRefused(t *testing.T) {
	w := worldOf(t).API()
	for says, o := range map[string]report.EfficiencyOptions{
		"jobs is -1; want a number from 1 to 100": {Worst: -1},
		"jobs is 101":              {Worst: 101},
		"scan is -1":               {Scan: -1},
		"top is -1":                {Top: -1},
		"memory_per_gb is NaN":     {MemoryPerGB: math.NaN()},
		"memory_per_gb is -1":      {MemoryPerGB: -1},
		"pue is 0":                 {Factors: report.Factors{Carbon: 1}},
		"carbon_per_kwh is -1":     {Factors: report.Factors{PUE: 1, Carbon: -1}},
		"kwh_per_gpu_hour is +Inf": {Factors: report.Factors{PUE: 1, GPUHour: math.Inf(1)}},
	} {
		if _, err := report.Efficiency(t.Context(), w, o); !errors.Is(err, report.ErrQuery) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	for says, o := range map[string]report.StatementOptions{"top is -1": {Top: -1}, "top is 101": {Top: 101}, "memory_per_gb is NaN": {MemoryPerGB: math.NaN()}} {
		o.Of = map[string]string{"group_id": "cms"}
		if _, err := report.Statement(t.Context(), w, o); !errors.Is(err, report.ErrQuery) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

func TestAComponentOfTheWrongKindIsNotTakenForWhatWasUsed(t *testing.T) {
	w, list := worldOf(t), apitest.Records(append(jobsOfCMS(), unnamed())...)
	for i := range list {
		for j := range list[i].Components {
			switch c := &list[i].Components[j]; c.Name {
			case "TotalCPU":
				c.Kind = record.Rate
			case "MemoryUsed":
				c.Kind = record.Total
			}
		}
	}
	w.Post(list...)
	d := efficient(t, w, report.EfficiencyOptions{})
	for first, want := range map[string]string{"Cores": "Cores|core-hours|98|||||", "Memory": "Memory|GiB-hours|28|||||"} {
		if got := row(t, d, "saving-1", first); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"the component TotalCPU is a rate, and is wanted as a total.", "the component MemoryUsed is a total, and is wanted as a rate."} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	for i := range d.Tables {
		if d.Tables[i].Name == "jobs" {
			t.Error("there are jobs that left something unused", d.Tables[i].Rows)
		}
	}
}

func TestWhereJobsCannotBeToldApartAReportSaysSo(t *testing.T) {
	w := worldOf(t, jobsOfCMS()...)
	w.Settings.Capacity.Clusters = []accounting.Cluster{{Name: "lhc", Match: []accounting.NodeMatch{{Key: "group_id", Values: []string{"cms"}}}}}
	w.Keep()
	d := efficient(t, w, report.EfficiencyOptions{Where: map[string]string{"cluster": "lhc"}})
	if got := row(t, d, "wait-1", "ann"); got != "ann|3||10|" {
		t.Error(got)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "no single job says its cluster of itself") {
		t.Error(notes)
	}
	jobs := jobsOfCMS()
	for i := range jobs {
		jobs[i].Meta = map[string]string{"host": "fat-1"}
	}
	w = worldOf(t, jobs...)
	w.Settings.Directory.Classes = []accounting.Class{{ID: "fat", Pattern: "^fat"}}
	w.Keep()
	d, err := report.Statement(t.Context(), w.API(), report.StatementOptions{Of: map[string]string{"host_class": "fat"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "no single job says its host_class of itself") {
		t.Error(notes)
	}
}

func TestWhereJobsAreTooManyTheMedianIsNotKnown(t *testing.T) {
	d := efficient(t, worldOf(t, jobsOfCMS()...), report.EfficiencyOptions{Scan: 4, Top: 1})
	if got := row(t, d, "wait-1", "ann"); got != "ann|3||10|" {
		t.Error(got)
	}
	if got := row(t, d, "cores-1", "(1 other)"); got != "(1 other)|2|3|3.5|1.166666667|0|0|0" {
		t.Error(got)
	}
	if !strings.Contains(strings.Join(d.Notes, "\n"), "more than 4 jobs began") {
		t.Error(d.Notes)
	}
}

func TestEfficiencyOfNobodyNamesWhatIsNear(t *testing.T) {
	w := autumn(t)
	for value, want := range map[string]string{"cmss": `did you mean "cms"?`, "zeus": "the nearest months that have some are 2026-06, 2026-08, 2026-09"} {
		_, err := report.Efficiency(t.Context(), w.API(), report.EfficiencyOptions{Periods: []string{"2031"}, Where: map[string]string{"group_id": value}, Now: now()})
		if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestEfficiency_Help_NamesTheSourcesOfCPUTime(t *testing.T) {
	words := map[string]string{"slurm": "Slurm", "gridengine": "Grid Engine", "htcondor": "HTCondor", "kubernetes": "Kubernetes"}
	help := ""
	for _, e := range report.Catalogue() {
		if e.Name == "efficiency" {
			help = strings.Join(strings.Fields(e.Long), " ")
		}
	}
	files, err := filepath.Glob("../../../plugins/source/*/README.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source := filepath.Base(filepath.Dir(file))
		switch word, reports := words[source], strings.Contains(string(text), "component \"TotalCPU\" {"); {
		case reports && (word == "" || !strings.Contains(help, word)):
			t.Errorf("the help does not name the source %s, which reports CPU time", source)
		case !reports && word != "":
			t.Errorf("the help names the source %s, which reports no CPU time", source)
		}
	}
}
