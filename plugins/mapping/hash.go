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

func (h *fnv) addByte(b byte) { *h = (*h ^ fnv(b)) * 1099511628211 }

func (h *fnv) addText(s string) {
	for i := range len(s) {
		h.addByte(s[i])
	}
	h.addNumber(uint64(len(s)))
}

func (h *fnv) addNumber(n uint64) {
	for range 8 {
		h.addByte(byte(n))
		n >>= 8
	}
}

// Fingerprint identifies what becomes of a job: the mapping, whether the job has
// ended or is left out, and the attributes that the mapping names. A job whose
// fingerprint is the one that was sent need not be mapped again.
func (m *Mapper) Fingerprint(job *bursarv1.Job) uint64 {
	h := newHash()
	h.addNumber(m.digest)
	h.addByte(jobFlags(job))
	for _, i := range m.used {
		if i < len(job.GetValues()) {
			h.addValue(job.GetValues()[i])
		} else {
			h.addByte(0)
		}
	}
	return uint64(h)
}

func jobFlags(job *bursarv1.Job) byte {
	var f byte
	if job.GetEnded() {
		f |= 1
	}
	if job.GetExcluded() {
		f |= 2
	}
	return f
}

func (h *fnv) addValue(v *bursarv1.Value) {
	switch k := v.GetKind().(type) {
	case *bursarv1.Value_StringValue:
		h.addByte(1)
		h.addText(k.StringValue)
	case *bursarv1.Value_BytesValue:
		h.addByte(2)
		h.addText(string(k.BytesValue))
	case *bursarv1.Value_IntValue:
		h.addByte(3)
		h.addNumber(uint64(k.IntValue))
	case *bursarv1.Value_FloatValue:
		h.addByte(4)
		h.addNumber(math.Float64bits(k.FloatValue))
	case *bursarv1.Value_BoolValue:
		h.addByte(5)
		if k.BoolValue {
			h.addByte(1)
		}
	case *bursarv1.Value_ListValue:
		h.addByte(6)
		for _, e := range k.ListValue.GetValues() {
			h.addValue(e)
		}
	case *bursarv1.Value_MapValue:
		h.addByte(7)
		h.addMap(k.MapValue.GetValues())
	default:
		h.addByte(0)
	}
}

func (h *fnv) addMap(m map[string]*bursarv1.Value) {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h.addText(name)
		h.addValue(m[name])
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
