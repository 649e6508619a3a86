package mapping

import (
	"math"
	"os"
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// fnv is FNV-1a of 64 bits: the fingerprints that it gives are kept in the
// buffer's file, so it never changes.
type fnv uint64

func newHash() fnv { return 14695981039346656037 }

func (h *fnv) byte(b byte) { *h = (*h ^ fnv(b)) * 1099511628211 }

func (h *fnv) text(s string) {
	for i := range len(s) {
		h.byte(s[i])
	}
	h.number(uint64(len(s)))
}

func (h *fnv) number(n uint64) {
	for range 8 {
		h.byte(byte(n))
		n >>= 8
	}
}

// Fingerprint identifies what becomes of a job: the mapping, whether the job has
// ended or is left out, and the attributes that the mapping names. A job whose
// fingerprint is the one that was sent need not be mapped again.
func (m *Mapper) Fingerprint(job *bursarv1.Job) uint64 {
	h := newHash()
	h.number(m.digest)
	h.byte(flags(job))
	for _, i := range m.used {
		if i < len(job.GetValues()) {
			h.value(job.GetValues()[i])
		} else {
			h.byte(0)
		}
	}
	return uint64(h)
}

func flags(job *bursarv1.Job) byte {
	var f byte
	if job.GetEnded() {
		f |= 1
	}
	if job.GetExcluded() {
		f |= 2
	}
	return f
}

func (h *fnv) value(v *bursarv1.Value) {
	switch k := v.GetKind().(type) {
	case *bursarv1.Value_StringValue:
		h.byte(1)
		h.text(k.StringValue)
	case *bursarv1.Value_BytesValue:
		h.byte(2)
		h.text(string(k.BytesValue))
	case *bursarv1.Value_IntValue:
		h.byte(3)
		h.number(uint64(k.IntValue))
	case *bursarv1.Value_FloatValue:
		h.byte(4)
		h.number(math.Float64bits(k.FloatValue))
	case *bursarv1.Value_BoolValue:
		h.byte(5)
		if k.BoolValue {
			h.byte(1)
		}
	case *bursarv1.Value_ListValue:
		h.byte(6)
		for _, e := range k.ListValue.GetValues() {
			h.value(e)
		}
	case *bursarv1.Value_MapValue:
		h.byte(7)
		h.entries(k.MapValue.GetValues())
	default:
		h.byte(0)
	}
}

func (h *fnv) entries(m map[string]*bursarv1.Value) {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h.text(name)
		h.value(m[name])
	}
}

// sourceOf returns the text of a record block, so that a changed mapping is
// noticed; "" without one.
func sourceOf(body hcl.Body) string {
	if body == nil {
		return ""
	}
	text, err := os.ReadFile(body.SrcRange.Filename)
	if err != nil || body.EndRange.End.Byte > len(text) {
		return body.SrcRange.String()
	}
	return string(text[body.SrcRange.Start.Byte:body.EndRange.End.Byte])
}
