package hcl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
)

type Pause struct {
	Timeout time.Duration `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"for one post"`
}

type limited struct {
	Pause
	Every   hcl.Duration   `hcl:"every,optional" default:"1h"`
	Room    hcl.Size       `hcl:"room,optional" default:"1MiB" min:"64KiB"`
	Batch   int            `hcl:"batch,optional" default:"100" max:"1000"`
	Speed   float64        `hcl:"speed,optional" default:"1" min:"0.5"`
	Method  string         `hcl:"method,optional" default:"POST" allowed:"POST PUT"`
	Input   hcl.String     `hcl:"input" allowed:"usage none"`
	Users   hcl.Strings    `hcl:"users,optional" default:"[\"root\", \"slurm\"]"`
	Env     map[string]int `hcl:"env,optional" default:"{ A = 1 }"`
	Running bool           `hcl:"running,optional" default:"true"`
	Plain   bool           `hcl:"plain,optional"`
	TLS     *struct {
		CA string `hcl:"ca" doc:"authorities"`
	} `hcl:"tls,block" doc:"whom to trust"`
	Room2 struct {
		Size hcl.Size `hcl:"size,optional" default:"1GiB"`
	} `hcl:"room2,block,optional"`
	Groups []struct {
		Name   string      `hcl:"name,label"`
		Params hcl.Strings `hcl:"params,optional"`
	} `hcl:"group,block"`
}

func TestDefaultsComeFromTheTagsAndNullKeepsThem(t *testing.T) {
	var got limited
	file, diags := hcl.Parse("x.hcl", []byte("input = \"usage\"\ntimeout = null\nspeed = 2\nrunning = false\n"))
	diags.Extend(hcl.Decode(file, &got, nil))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got.Input = hcl.String{Value: got.Input.Value}
	want := limited{
		Pause: Pause{Timeout: 30 * time.Second}, Every: hcl.Duration{Duration: time.Hour}, Room: hcl.Size{Bytes: 1 << 20}, Batch: 100, Speed: 2,
		Method: "POST", Input: hcl.String{Value: "usage"}, Users: hcl.Strings{"root", "slurm"}, Env: map[string]int{"A": 1},
	}
	want.Room2.Size.Bytes = 1 << 30
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestValuesOutsideOfTheirTagsAreRefusedWithTheirPlace(t *testing.T) {
	for src, want := range map[string]string{
		`timeout = "1ms"`:   `x.hcl:1:11: invalid value for "timeout"; must be between 1s and 10m, not 1ms`,
		`timeout = "11m"`:   `must be between 1s and 10m, not 11m0s`,
		`room = "1KiB"`:     `must be at least 64KiB, not 1KiB`,
		`batch = 1001`:      `must be at most 1000, not 1001`,
		`speed = 0.25`:      `must be at least 0.5, not 0.25`,
		`method = "PUTT"`:   `"PUTT" is not allowed here; did you mean "PUT"?`,
		`users = ["a", {}]`: `x.hcl:1:15: invalid value for "users"; expected a string, not a map`,
		`timeout = "soon"`:  `is not a duration`,
	} {
		file, diags := hcl.Parse("x.hcl", []byte(src+"\ninput = \"none\"\n"))
		diags.Extend(hcl.Decode(file, new(limited), nil))
		if !strings.Contains(diags.Error(), want) || strings.Contains(diags.Error(), "\n") {
			t.Errorf("%s: %s", src, diags.Error())
		}
	}
}

func TestSettingsAreListedInTheOrderOfTheFields(t *testing.T) {
	want := []hcl.Setting{
		{Name: "timeout", Default: `"30s"`, Doc: "for one post", Bounds: "between 1s and 10m"},
		{Name: "every", Default: `"1h"`},
		{Name: "room", Default: `"1MiB"`, Bounds: "at least 64KiB"},
		{Name: "batch", Default: "100", Bounds: "at most 1000"},
		{Name: "speed", Default: "1", Bounds: "at least 0.5"},
		{Name: "method", Default: `"POST"`, Allowed: []string{"POST", "PUT"}},
		{Name: "input", Required: true, Allowed: []string{"usage", "none"}},
		{Name: "users", Default: `["root", "slurm"]`},
		{Name: "env", Default: "{ A = 1 }"},
		{Name: "running", Default: "true"},
		{Name: "plain", Default: "false"},
		{Name: "tls { … }", Doc: "whom to trust"},
		{Name: "tls.ca", Required: true, Doc: "authorities"},
		{Name: "room2 { … }"},
		{Name: "room2.size", Default: `"1GiB"`},
		{Name: `group "<name>" { params }`},
	}
	got := hcl.SettingsOf(new(limited))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if m := (hcl.Setting{Allowed: []string{"a", "b"}, Doc: "what", Bounds: "at most 1"}).Meaning(strings.ToUpper); m != "one of A, B; what; at most 1" {
		t.Error(m)
	}
}
