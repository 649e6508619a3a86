package columns

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// pattern draws numbers of the sorts that columns have.
func pattern(t *rapid.T) []uint64 {
	n := rapid.IntRange(1, 600).Draw(t, "n")
	base := rapid.Uint64().Draw(t, "base")
	scale := rapid.SampledFrom([]uint64{1, 7, 1000, 1_000_000, 1 << 40}).Draw(t, "scale")
	span := rapid.SampledFrom([]uint64{1, 2, 40, 300, 1 << 20, 1 << 63}).Draw(t, "span")
	sum := rapid.Bool().Draw(t, "sum")
	v, at := make([]uint64, n), base
	for i, x := range rapid.SliceOfN(rapid.Uint64(), n, n).Draw(t, "numbers") {
		v[i] = base + x%span*scale
		if at += x % span * scale; sum {
			v[i] = at
		}
	}
	return v
}

func TestAnyNumbersComeBackWithinTheBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, v := newCodecOnce(), pattern(rt)
		group := make([]uint32, len(v))
		for i := range group {
			group[i] = uint32(v[i] % 3)
		}
		groups := func() ([]uint32, error) { return group, nil }
		least, most, _ := surveyNumbers(v)
		for _, g := range [][]uint32{nil, group} {
			data := c.appendNumbers(nil, v, g)
			if bound := len(v)*byteWidth(uint64(most-least)) + numbersOverhead; len(data) > bound {
				rt.Fatalf("%d bytes, bound %d", len(data), bound)
			}
			got := make([]uint64, len(v))
			if err := c.readColumn(got, data, groups); err != nil || !slices.Equal(got, v) {
				rt.Fatalf("mode %d: %v, %v", data[0], got, err)
			}
		}
	})
}

func newCodecOnce() *codec {
	c := getCodec()
	putCodec(c)
	return c
}

func TestColumnsTakeTheModeThatFits(t *testing.T) {
	make1 := func(f func(i int) uint64) []uint64 {
		v := make([]uint64, 4096)
		for i := range v {
			v[i] = f(i)
		}
		return v
	}
	hash := func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 >> 20 }
	cases := []struct {
		name string
		v    []uint64
		mode byte
		most int // bytes
	}{
		{"constant", make1(func(int) uint64 { return 1 << 60 }), modeConst, 12},
		{"counting", make1(func(i int) uint64 { return 1<<50 + 3*uint64(i) }), modeLinear, 12},
		{"few values", make1(func(i int) uint64 { return []uint64{3, 1_000_003, 78, 1<<33 + 1}[hash(i)%4] }), modeTable, 2100},
		{"random", make1(func(i int) uint64 { return hash(i) % 60_000 }), modePlain, 2*4096 + 48},
		{"ascending", make1(func(i int) uint64 { return 1<<40 + uint64(i)*1000 + hash(i)%900 }), modeDelta, 2*4096 + 48},
		{"whole seconds", make1(func(i int) uint64 { return hash(i) % 256 * 1_000_000 }), modePlain, 4096 + 48},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := newCodecOnce().appendNumbers(nil, c.v, nil)
			if data[0] != c.mode || len(data) > c.most {
				t.Errorf("mode %d with %d bytes, want mode %d with at most %d", data[0], len(data), c.mode, c.most)
			}
		})
	}
}

func TestIDsComeBackFromTheirTemplates(t *testing.T) {
	cases := []struct {
		id       string
		template string
	}{
		{"nemo-slurm-1234567", "\x00\x0bnemo-slurm-\x01"},
		{"nemo-slurm-123_45", "\x00\x0bnemo-slurm-\x01\x00\x01_\x01"},
		{"0", "\x01"},
		{"007", "\x02\x03"},
		{"x-0f8fad5b-d9cb-469f-a165-70867728950e", "\x00\x02x-\x03"},
		{"deadbeefdeadbeef", "\x04\x08"},
		{"1234567890123456789", "\x00\x131234567890123456789"},
		{"12a", "\x00\x0312a"},
		{"", ""},
	}
	for _, c := range cases {
		p := idParser{}
		p.splitID(c.id)
		got := appendID(nil, string(p.template), func(k int) uint64 { return p.numbers[k] }, p.bytes)
		if string(p.template) != c.template || string(got) != c.id {
			t.Errorf("%q: template %q gives %q", c.id, p.template, got)
		}
	}
}
