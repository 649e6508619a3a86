package record

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimesAreReadAsAuditorReadsThem(t *testing.T) {
	cases := []struct{ in, want string }{
		{"2023-02-24T00:27:58Z", "2023-02-24T00:27:58Z"},
		{"2023-02-24T00:27:58z", "2023-02-24T00:27:58Z"},
		{"2023-02-24t00:27:58Z", "2023-02-24T00:27:58Z"},
		{"2023-02-24 00:27:58+00:00", "2023-02-24T00:27:58Z"},
		{"2023-02-24T00:27:58-00:00", "2023-02-24T00:27:58Z"},
		{"2023-02-24T00:27:58+01:00", "2023-02-23T23:27:58Z"},
		{"2023-02-24T00:27:58-0530", "2023-02-24T05:57:58Z"},
		{"2023-12-31T23:59:59-23:59", "2024-01-01T23:58:59Z"},
		{"2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"},
		{"2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z"},
		{"2023-02-24T00:27:58.043079Z", "2023-02-24T00:27:58.043079Z"},
		{"2023-02-24T00:27:58.1Z", "2023-02-24T00:27:58.100Z"},
		{"2023-02-24T00:27:58.000Z", "2023-02-24T00:27:58Z"},
		{"2023-02-24T00:27:58.1234567Z", "2023-02-24T00:27:58.123456Z"},
		{"2023-02-24T00:27:58.999999999999Z", "2023-02-24T00:27:58.999999Z"},
		{"1969-12-31T23:59:59.000001Z", "1969-12-31T23:59:59.000001Z"},
		{"2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
	}
	for _, c := range cases {
		got, err := ParseTime(c.in)
		if err != nil || got.String() != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.in, got, err, c.want)
		}
	}
}

func TestBadTimesAreRefused(t *testing.T) {
	for _, in := range []string{
		"", "now", "2023-02-24", "2023-02-24T00:27:58", "2023-02-24T00:27Z", "2023-02-24T00:27:58.Z", "2023-02-24T00:27:58,5Z",
		"2023-02-24T00:27:58+1", "2023-02-24T00:27:58+01", "2023-02-24T00:27:58+24:00", "2023-02-24T00:27:58+01:60", "2023-02-24T00:27:58 Z",
		"2023-13-24T00:27:58Z", "2023-00-24T00:27:58Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2023-04-31T00:00:00Z", "2023-02-00T00:00:00Z",
		"2023-02-24T24:00:00Z", "2023-02-24T00:60:00Z", "2023-02-24T00:00:61Z", "2023-02-24_00:27:58Z", "2023/02/24T00:27:58Z",
		"2023-02-24T00:27:58ZZ", "20230224T002758Z", "+023-02-24T00:27:58Z", "2023-02-24T-1:27:58Z", "２023-02-24T00:27:58Z",
		"0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", strings.Repeat("9", 1<<20),
	} {
		got, err := ParseTime(in)
		if !errors.Is(err, ErrTime) || got != None {
			t.Errorf("%.40q: %s, %v", in, got, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	}
}

func TestTimesArePrintedInZeroThreeOrSixDigits(t *testing.T) {
	cases := map[Time]string{
		None:         "none",
		0:            "1970-01-01T00:00:00Z",
		1:            "1970-01-01T00:00:00.000001Z",
		1000:         "1970-01-01T00:00:00.001Z",
		-1:           "1969-12-31T23:59:59.999999Z",
		-500_000:     "1969-12-31T23:59:59.500Z",
		MinTime:      "0000-01-01T00:00:00Z",
		MaxTime:      "9999-12-31T23:59:59.999999Z",
		59*Day + Day: "1970-03-02T00:00:00Z",
	}
	for in, want := range cases {
		if got := in.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(in), got, want)
		}
	}
}

func TestTimesComeBackAndAgreeWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Time(rapid.Int64Range(int64(MinTime), int64(MaxTime)).Draw(t, "time"))
		if back, err := ParseTime(v.String()); err != nil || back != v {
			t.Fatalf("%s came back as %s, %v", v, back, err)
		}
		std, err := time.Parse(time.RFC3339Nano, v.String())
		if err != nil || std.UnixMicro() != int64(v) {
			t.Fatalf("%s is %s for the standard library, %v", v, std, err)
		}
		if FromStd(v.Std()) != v || !v.Present() {
			t.Fatalf("%s is not what its time.Time is", v)
		}
	})
}

func TestNoTimeIsNone(t *testing.T) {
	if FromStd(time.Time{}) != None || !None.Std().IsZero() || None.Present() {
		t.Error("the zero time.Time and None differ")
	}
	cut := time.Date(2023, 2, 24, 0, 0, 0, 1999, time.FixedZone("", 3600))
	if got := FromStd(cut).String(); got != "2023-02-23T23:00:00.000001Z" {
		t.Errorf("got %s", got)
	}
}

// FuzzParseTime compares with time.Parse: what it accepts in RFC 3339's own
// shape is accepted with the same value, and nothing else but the liberties that
// ParseTime names.
func FuzzParseTime(f *testing.F) {
	f.Add("2023-02-24T00:27:58.043079Z")
	f.Add("2023-02-24 00:27:58+01:00")
	f.Add("2016-12-31t23:59:60-0130")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s)
		std, bad := time.Parse(time.RFC3339Nano, s)
		if bad == nil && err != nil && strict(s) && std.Year() >= 0 && std.UTC().Year() >= 0 && std.UTC().Year() <= 9999 {
			t.Fatalf("%q refused: %v", s, err)
		}
		if err != nil {
			return
		}
		if bad == nil && std.UnixMicro() != int64(got) {
			t.Fatalf("%q: got %s, want %s", s, got, std.UTC())
		}
		if back, err := ParseTime(got.String()); err != nil || back != got {
			t.Fatalf("%q: %s came back as %s, %v", s, got, back, err)
		}
	})
}

// strict reports whether s has no liberty that only time.Parse takes: a comma,
// an hour of one digit, an offset of 24 hours or more.
func strict(s string) bool {
	zone := strings.LastIndexAny(s, "+-")
	return len(s) > 19 && s[13] == ':' && !strings.Contains(s, ",") &&
		(strings.HasSuffix(s, "Z") || zone > 18 && s[zone+1:] < "24" && s[zone+4:] < "60")
}

func BenchmarkParseTime(b *testing.B) {
	for b.Loop() {
		if _, err := ParseTime("2023-02-24T00:27:58.043079Z"); err != nil {
			b.Fatal(err)
		}
	}
}
