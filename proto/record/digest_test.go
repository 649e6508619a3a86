package record

import (
	"encoding/hex"
	"testing"
)

// The digests of these records are stored and compared between releases: a test
// that fails here must not be fixed by another value.
func TestDigestsNeverChange(t *testing.T) {
	cases := []struct {
		name   string
		r      Record
		digest string
	}{
		{"zero", Record{}, "27268e6ee67493bbca78c25cc53b55d3"},
		{"the least", Record{ID: "x", Stop: None, Submit: None}, "3bb479642e0b444a52b94b3f8a270d78"},
		{"an empty meta", Record{ID: "x", Meta: Meta{}, Stop: None, Submit: None}, "e3b6a846158b0e40ade429dc605edda1"},
		{"full", *full(), "6d6fbd1f8782760f09b993accd93662c"},
	}
	for _, c := range cases {
		d := c.r.Digest()
		if got := hex.EncodeToString(d[:]); got != c.digest {
			t.Errorf("%s: got %s, want %s", c.name, got, c.digest)
		}
	}
}

// Everything that a record says is in its digest, and where one text ends and
// the next begins is, too.
func TestDifferentRecordsHaveDifferentDigests(t *testing.T) {
	changes := map[string]func(*Record){
		"id":                    func(r *Record) { r.ID = "nemo-2" },
		"no meta":               func(r *Record) { r.Meta = nil },
		"empty meta":            func(r *Record) { r.Meta = Meta{} },
		"key":                   func(r *Record) { r.Meta[0].Key = "grouq_id" },
		"value":                 func(r *Record) { r.Meta[0].Values[0] = "cms" },
		"order of values":       func(r *Record) { v := r.Meta[1].Values; v[0], v[1] = v[1], v[0] },
		"a value less":          func(r *Record) { r.Meta[1].Values = r.Meta[1].Values[:1] },
		"values joined":         func(r *Record) { r.Meta[1].Values = []string{"/atlas/atlas/de"} },
		"values cut elsewhere":  func(r *Record) { r.Meta[1].Values = []string{"/atlas/", "atlas/de"} },
		"order of components":   func(r *Record) { c := r.Components; c[0], c[1] = c[1], c[0] },
		"amount":                func(r *Record) { r.Components[0].Amount++ },
		"kind":                  func(r *Record) { r.Components[0].Kind = Total },
		"name":                  func(r *Record) { r.Components[0].Name = "cores" },
		"score":                 func(r *Record) { r.Components[0].Scores[0].Value = 21.500000000000004 },
		"score's name":          func(r *Record) { r.Components[0].Scores[0].Name = "HS23" },
		"no score":              func(r *Record) { r.Components[0].Scores = nil },
		"start":                 func(r *Record) { r.Start++ },
		"stop":                  func(r *Record) { r.Stop++ },
		"open":                  func(r *Record) { r.Stop = None },
		"submission":            func(r *Record) { r.Submit = None },
		"state":                 func(r *Record) { r.State = "FAILED" },
		"exit code":             func(r *Record) { r.Exit.Code = 0 },
		"signal":                func(r *Record) { r.Exit.Signal = 0 },
		"exit unknown":          func(r *Record) { r.Exit = Exit{} },
		"exit known to be zero": func(r *Record) { r.Exit = Exit{Known: true} },
	}
	seen := map[Digest]string{full().Digest(): "nothing"}
	for name, change := range changes {
		r := full()
		change(r)
		d := r.Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
}

func TestEqualRecordsHaveEqualDigests(t *testing.T) {
	a, b := full(), full()
	a.Components[1].Scores, b.Components[1].Scores = nil, []Score{}
	a.Meta[0].Values, b.Meta[0].Values = nil, []string{}
	if !Same(a, b) || a.Digest().Compare(b.Digest()) != 0 {
		t.Error("an absent list and an empty one differ")
	}
	c := full()
	c.ID = "nemo-2"
	if Same(a, c) || a.Digest().Compare(c.Digest()) == 0 {
		t.Error("two ids are the same")
	}
}
