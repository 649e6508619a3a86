package view_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestOthers_EveryNumber_IsRecognised(t *testing.T) {
	for range 200 {
		if n := rand.IntN(3_000_000); !view.IsOthers(view.Others(n)) {
			t.Errorf("%s is not recognised", view.Others(n))
		}
	}
	for _, name := range []string{"1 others", "57 others", "(others)", "( others)", "(x others)", "(1 others", "", view.NoValue} {
		if view.IsOthers(name) {
			t.Errorf("%q is taken for others", name)
		}
	}
}

func TestGroupName_EachKindOfGroup_HasOneName(t *testing.T) {
	some := "atlas"
	for want, g := range map[string]v1.UsageGroup{
		"atlas / (none)": {Values: []*string{&some, nil}},
		"(1 other)":      {Others: 1, Values: []*string{nil, nil}},
		"(57 others)":    {Others: 57},
		"":               {},
	} {
		if got := view.GroupName(&g); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fmt.Sprintf("%q", view.GroupValues(&v1.UsageGroup{Others: 57}, 2)); got != `["(57 others)" ""]` {
		t.Error(got)
	}
}

func TestCount_AnyWholeNumber_HasThousandsApart(t *testing.T) {
	var none *int64
	number := uint64(18446744073709551615)
	for want, n := range map[string]any{"0": 0, "999": int32(999), "1 000": int64(1000), "−12 345": -12345, "18 446 744 073 709 551 615": &number, "–": none} {
		if got := strings.ReplaceAll(view.Count(n), "\u202f", " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpan_AnyLength_HasAtMostTwoUnits(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 s": 0, "119 s": 119 * time.Second, "2 min": 2 * time.Minute, "119 min": 119 * time.Minute,
		"2 h 00 min": 2 * time.Hour, "47 h 59 min": 48*time.Hour - time.Minute, "2 d 0 h": 48 * time.Hour, "9 d 3 h": 219 * time.Hour,
	} {
		if got := view.Span(d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSize_AnyNumberOfBytes_IsInTheLargestUnit(t *testing.T) {
	for want, n := range map[string]any{"0 B": -5, "1023 B": 1023, "1.5 KiB": int64(1536), "25 MiB": uint64(25 << 20), "9.8 GiB": int64(98 << 30 / 10), "2048 TiB": uint64(1 << 51)} {
		if got := strings.ReplaceAll(view.Size(n), "\u202f", " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFigures_PluralsAndOthers_AreWrittenHereOnly(t *testing.T) {
	copies := regexp.MustCompile(`"%d others"|"\(none\)"|"%ds |return "1 " \+|" others"|%02d:%02d:%02d|"[KMGT]iB"\}|%\.1f [KMGT]iB`)
	for _, folder := range []string{"cli", "web", "report", "compat"} {
		files, err := filepath.Glob("../" + folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if found := copies.Find(text); found != nil && !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s writes %s itself; package view does", path, found)
			}
		}
	}
}
