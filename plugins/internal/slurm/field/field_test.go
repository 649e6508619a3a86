package field_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
)

func TestTimesOfEveryFormAreRead(t *testing.T) {
	for text, want := range map[string]int64{
		"1795239485": 1795239485, "2026-11-21T05:38:05": 1795239485, "2026-11-21T05:38:05Z": 1795239485,
		"Unknown": 0, "None": 0, "": 0, "0": 0, "N/A": 0,
	} {
		got, err := field.Time(text)
		if err != nil || (want == 0) != got.IsZero() || (want != 0 && got.Unix() != want) {
			t.Errorf("%q: %v, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"-5", "yesterday", "2026-11-21", "99999999999999", "1795239485.5x"} {
		if got, err := field.Time(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestDurationsKeepTheirFractions(t *testing.T) {
	for text, want := range map[string]field.Micros{
		"00:05.455": 5_455_000, "00:00:03": 3_000_000, "01:02:03": 3_723_000_000, "1-02:03:04": 93_784_000_000,
		"00:00.0000019": 1, "59:59.999999": 3_599_999_999, "700000-00:00:00": 700_000 * 86_400_000_000, "100:00:00": 360_000_000_000,
	} {
		if got, known, err := field.Duration(text); err != nil || !known || got != want {
			t.Errorf("%q: %d, %v, %v; want %d", text, got, known, err, want)
		}
	}
}

func TestDurationsWithoutANumberAreUnknown(t *testing.T) {
	for _, text := range []string{"", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown"} {
		if _, known, err := field.Duration(text); known || err != nil {
			t.Errorf("%q: %v, %v", text, known, err)
		}
	}
	for _, text := range []string{"5", "1:2:3:4", "1-2", "a:b", "-1:00", "00:00.", "00:00.1x", "1-00:00", "99999999999999999999:00"} {
		if got, known, err := field.Duration(text); err == nil {
			t.Errorf("%q was read as %d, %v", text, got, known)
		}
	}
}

func TestSecondsAreRoundedHalfToEven(t *testing.T) {
	for micros, want := range map[field.Micros]int64{
		500_000: 0, 1_500_000: 2, 2_500_000: 2, 2_500_001: 3, 499_999: 0, 3_499_999: 3, 0: 0,
	} {
		if got := micros.Seconds(); got != want {
			t.Errorf("%d: %d, want %d", micros, got, want)
		}
	}
}

func TestMemoryOfOldAndNewSlurmIsRead(t *testing.T) {
	type amount struct {
		bytes int64
		per   field.Per
		known bool
	}
	for text, want := range map[string]amount{
		"600M": {600 << 20, field.PerJob, true}, "16G": {16 << 30, field.PerJob, true}, "2000Mn": {2000 << 20, field.PerNode, true},
		"4Gc": {4 << 30, field.PerCore, true}, "0n": {0, field.PerNode, true}, "3473408": {3473408, field.PerJob, true},
		"3168K": {3168 << 10, field.PerJob, true}, "2.50G": {5 << 29, field.PerJob, true}, "1T": {1 << 40, field.PerJob, true},
		"": {}, "1P": {1 << 50, field.PerJob, true}, "18446744073709551614": {},
	} {
		bytes, per, known, err := field.Memory(text)
		if got := (amount{bytes, per, known}); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"M", "n", "1X", "-5M", "1.xM", "99999999999P", "9223372036854775807K"} {
		if got, _, _, err := field.Memory(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestGPUsAreCountedByType(t *testing.T) {
	for text, want := range map[string]struct {
		total int64
		types map[string]int64
	}{
		"billing=1,cpu=1,mem=100M,node=1":                          {},
		"cpu=1,gres/gpu=2":                                         {total: 2},
		"gres/gpu:tesla=1,gres/gpu=1":                              {1, map[string]int64{"tesla": 1}},
		"gres/gpu:a100=4,gres/gpu:v100=2":                          {6, map[string]int64{"a100": 4, "v100": 2}},
		"gres/gpu=8,gres/gpu:a100=4,gres/gpumem=80G,gres/shard=16": {8, map[string]int64{"a100": 4}},
	} {
		list, err := field.TRES(text)
		if err != nil {
			t.Fatal(err)
		}
		total, types, err := field.GPUs(list)
		if err != nil || total != want.total || !cmp.Equal(types, want.types) {
			t.Errorf("%q: %d, %v, %v; want %v", text, total, types, err, want)
		}
	}
}

func TestStatesSayWhoCancelled(t *testing.T) {
	for text, want := range map[string]field.State{
		"COMPLETED": {"COMPLETED", -1}, "CANCELLED by 1002": {"CANCELLED", 1002}, "CANCELLED": {"CANCELLED", -1},
		"CANCELLED+": {"CANCELLED", -1}, "OUT_OF_MEMORY": {"OUT_OF_MEMORY", -1}, "CANCELLED by root": {"CANCELLED", -1},
	} {
		if got, err := field.ParseState(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "completed", "a|b", "7"} {
		if got, err := field.ParseState(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestEndStatesAreKnownByLongAndShortName(t *testing.T) {
	for text, want := range map[string]string{"cd": "COMPLETED", "completed": "COMPLETED", "OOM": "OUT_OF_MEMORY", "Timeout": "TIMEOUT"} {
		if got, ok := field.EndState(text); !ok || got != want {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"RUNNING", "R", "", "DONE"} {
		if got, ok := field.EndState(text); ok {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

func TestExitCodesAreRead(t *testing.T) {
	if code, signal, known, err := field.Exit("7:15"); code != 7 || signal != 15 || !known || err != nil {
		t.Error(code, signal, known, err)
	}
	if _, _, known, err := field.Exit(""); known || err != nil {
		t.Error(known, err)
	}
	for _, text := range []string{"7", "a:b", "1:-1", "1:2:3", "99999999999:0"} {
		if _, _, _, err := field.Exit(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestJobIDsOfEveryKindAreRead(t *testing.T) {
	for text, want := range map[string]field.JobID{
		"7":               {Job: "7", Number: 7, Task: -1, Offset: -1},
		"7.batch":         {Job: "7", Step: "batch", Number: 7, Task: -1, Offset: -1},
		"7.interactive":   {Job: "7", Step: "interactive", Number: 7, Task: -1, Offset: -1},
		"5_4":             {Job: "5_4", Number: 5, Task: 4, Offset: -1},
		"5_4.0":           {Job: "5_4", Step: "0", Number: 5, Task: 4, Offset: -1},
		"5_[1-4,9%2]":     {Job: "5_[1-4,9%2]", Number: 5, Task: -1, Offset: -1, Range: true},
		"5_[1-4,...]":     {Job: "5_[1-4,...]", Number: 5, Task: -1, Offset: -1, Range: true},
		"19+1":            {Job: "19+1", Number: 19, Task: -1, Offset: 1},
		"19+0.extern":     {Job: "19+0", Step: "extern", Number: 19, Task: -1, Offset: 0},
		"12.0+1":          {Job: "12", Step: "0+1", Number: 12, Task: -1, Offset: -1},
		"67108863_100000": {Job: "67108863_100000", Number: 67108863, Task: 100000, Offset: -1},
	} {
		if got, err := field.ParseJobID(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "7.", "7x", "_4", "5_", "5_x", "19+", "5_[1-4", "5_4_3", "-7"} {
		if got, err := field.ParseJobID(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestDurationsThatSlurmCanWriteAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(0, 500_000).Draw(t, "days")
		rest := time.Duration(rapid.Int64Range(0, 86_399_999_999).Draw(t, "micros")) * time.Microsecond
		clock := time.Unix(0, 0).UTC().Add(rest).Format("15:04:05.000000")
		text := clock
		if d > 0 {
			text = strings.Join([]string{itoa(d), clock}, "-")
		}
		want := field.Micros(d*86_400_000_000 + rest.Microseconds())
		if got, known, err := field.Duration(text); err != nil || !known || got != want {
			t.Fatalf("%q: %d, %v, %v; want %d", text, got, known, err, want)
		}
	})
}

func itoa(n int64) string {
	var out []byte
	for ; n > 0; n /= 10 {
		out = append([]byte{byte('0' + n%10)}, out...)
	}
	return string(out)
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"1795239485", "2026-11-21T05:38:05", "Unknown", "None", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := field.Time(s); err == nil && !got.IsZero() && (got.Unix() < 0 || got.Year() > 9999) {
			t.Errorf("%q: %v", s, got)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"00:05.455", "1-02:03:04", "UNLIMITED", "99:99", "-1:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, _, err := field.Duration(s); err == nil && (got < 0 || got > math.MaxInt64/2) {
			t.Errorf("%q: %d", s, got)
		}
	})
}

func FuzzMemory(f *testing.F) {
	for _, s := range []string{"600M", "2000Mn", "4Gc", "2.60M", "18446744073709551614", "0.5E"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, _, _, err := field.Memory(s); err == nil && got < 0 {
			t.Errorf("%q: %d", s, got)
		}
	})
}

func FuzzTRES(f *testing.F) {
	for _, s := range []string{"billing=1,cpu=1,gres/gpu:a100=2,mem=100M", "cpu=00:00:03,energy=0", "=", ",", "gres/gpu=18446744073709551614"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := field.TRES(s)
		if err != nil {
			return
		}
		var parts []string
		for _, r := range list {
			parts = append(parts, r.Name+"="+r.Value)
		}
		if again := strings.Join(parts, ","); again != s {
			t.Errorf("%q became %q", s, again)
		}
		field.GPUs(list)
	})
}

func FuzzState(f *testing.F) {
	for _, s := range []string{"COMPLETED", "CANCELLED by 1002", "CANCELLED by ", "X+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := field.ParseState(s); err == nil && (got.Word == "" || got.By < -1) {
			t.Errorf("%q: %v", s, got)
		}
	})
}

func FuzzExit(f *testing.F) {
	f.Add("7:0")
	f.Add("0:15")
	f.Fuzz(func(t *testing.T, s string) {
		if code, signal, _, err := field.Exit(s); err == nil && (code < 0 || signal < 0) {
			t.Errorf("%q: %d %d", s, code, signal)
		}
	})
}

func FuzzJobID(f *testing.F) {
	for _, s := range []string{"7", "5_4.batch", "5_[1-4%2]", "19+1.0", "12.0+1", "5_[1.2].x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := field.ParseJobID(s)
		if err != nil {
			return
		}
		whole := id.Job
		if id.Step != "" {
			whole += "." + id.Step
		}
		if whole != s {
			t.Errorf("%q became %q", s, whole)
		}
	})
}
