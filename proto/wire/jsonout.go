package wire

import (
	"math"
	"slices"
	"strconv"

	"github.com/bursar-accounting/bursar/proto/record"
)

// AppendJSON appends r as AUDITOR's server gives it, without a newline: the
// fields record_id, meta, components, start_time, stop_time and runtime, always
// all and in this order. r must be valid.
func AppendJSON(b []byte, r *record.Record) []byte {
	b = appendHead(b, r)
	b = AppendAuditorComponentsJSON(append(b, `,"components":`...), r.Components)
	return append(appendTimes(b, r), '}')
}

// AppendAuditorComponentsJSON appends a list of valid components as AUDITOR's server gives
// it, without kinds.
func AppendAuditorComponentsJSON(b []byte, components []record.Component) []byte {
	b = append(b, '[')
	for i := range components {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendComponentHead(b, &components[i])
		b = appendScores(b, components[i].Scores)
	}
	return append(b, ']')
}

// V1Extra is what /v1 says of a record beyond the record itself.
type V1Extra struct {
	Origin   record.Origin
	Rank     record.Rank
	Seq      uint64      // the change's place in the feed
	Received record.Time // when the id was first received; None when unknown
	Changed  record.Time // when what is shown last changed; None when unknown
	Archived bool        // its details are in an archive, and only what usage needs is here
}

// AppendV1JSON appends r and x as /v1 gives them, without a newline: AUDITOR's
// fields, a kind in each component, and submit_time, state, exit_code,
// exit_signal (null when unknown), negative, origin, rank, received, changed and
// seq. Always all these fields are there, in one order; archived follows where it is true. r
// must be valid.
func AppendV1JSON(b []byte, r *record.Record, x V1Extra) []byte {
	b = appendHead(b, r)
	b = AppendComponentsJSON(append(b, `,"components":`...), r.Components)
	b = appendTimes(b, r)
	b = appendEnd(b, r)
	return append(appendExtra(b, &x), '}')
}

// AppendComponentsJSON appends a list of valid components as /v1 gives it, with their
// kinds.
func AppendComponentsJSON(b []byte, components []record.Component) []byte {
	b = append(b, '[')
	for i := range components {
		if i > 0 {
			b = append(b, ',')
		}
		c := &components[i]
		b = appendComponentHead(b, c)
		b = appendText(append(b, `,"kind":`...), c.Kind.String())
		b = appendScores(b, c.Scores)
	}
	return append(b, ']')
}

func appendHead(b []byte, r *record.Record) []byte {
	b = appendText(append(b, `{"record_id":`...), r.ID)
	return AppendMetaJSON(append(b, `,"meta":`...), r.Meta)
}

// AppendMetaJSON appends a valid meta; null where it is absent.
func AppendMetaJSON(b []byte, m record.Meta) []byte {
	if m == nil {
		return append(b, "null"...)
	}
	b = append(b, '{')
	for i := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, m[i].Key), ':')
		b = appendTexts(b, m[i].Values)
	}
	return append(b, '}')
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	return append(b, ']')
}

func appendComponentHead(b []byte, c *record.Component) []byte {
	b = appendText(append(b, `{"name":`...), c.Name)
	return strconv.AppendInt(append(b, `,"amount":`...), c.Amount, 10)
}

func appendScores(b []byte, scores []record.Score) []byte {
	b = append(b, `,"scores":[`...)
	for i := range scores {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"name":`...), scores[i].Name)
		b = appendNumber(append(b, `,"value":`...), scores[i].Value)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func appendTimes(b []byte, r *record.Record) []byte {
	b = appendTime(append(b, `,"start_time":`...), r.Start)
	b = appendTime(append(b, `,"stop_time":`...), r.Stop)
	b = append(b, `,"runtime":`...)
	seconds, ok := r.Runtime()
	if !ok {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, seconds, 10)
}

// appendEnd appends how the run came and went.
func appendEnd(b []byte, r *record.Record) []byte {
	b = appendTime(append(b, `,"submit_time":`...), r.Submit)
	b = append(b, `,"state":`...)
	if r.State == "" {
		b = append(b, "null"...)
	} else {
		b = appendText(b, r.State)
	}
	b = appendOptionalInt(append(b, `,"exit_code":`...), r.Exit.Known, r.Exit.Code)
	b = appendOptionalInt(append(b, `,"exit_signal":`...), r.Exit.Known, r.Exit.Signal)
	return strconv.AppendBool(append(b, `,"negative":`...), r.Negative())
}

func appendOptionalInt(b []byte, known bool, v int32) []byte {
	if !known {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(v), 10)
}

func appendExtra(b []byte, x *V1Extra) []byte {
	b = appendText(append(b, `,"origin":`...), x.Origin.String())
	b = appendText(append(b, `,"rank":`...), x.Rank.String())
	b = appendTime(append(b, `,"received":`...), x.Received)
	b = appendTime(append(b, `,"changed":`...), x.Changed)
	b = strconv.AppendUint(append(b, `,"seq":`...), x.Seq, 10)
	if x.Archived {
		b = append(b, `,"archived":true`...)
	}
	return b
}

// appendTime appends null for [record.None].
func appendTime(b []byte, t record.Time) []byte {
	if t == record.None {
		return append(b, "null"...)
	}
	return append(t.Append(append(b, '"')), '"')
}

// appendNumber appends v as AUDITOR does: the shortest text that reads back as
// v, always with a point or an exponent.
func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return append(strconv.AppendInt(b, int64(v), 10), ".0"...)
	case math.Abs(v) >= 1e16 || math.Abs(v) < 1e-5:
		return appendExponent(b, v)
	}
	from := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	if slices.Contains(b[from:], '.') {
		return b
	}
	return append(b, ".0"...)
}

// appendExponent writes the exponent without a plus and without leading zeroes.
func appendExponent(b []byte, v float64) []byte {
	from := len(b)
	b = strconv.AppendFloat(b, v, 'e', -1, 64)
	for i := from; i < len(b); i++ {
		if b[i] != 'e' {
			continue
		}
		digits := i + 1
		if b[digits] == '-' {
			digits++
		}
		zeroes := digits
		for zeroes < len(b)-1 && (b[zeroes] == '+' || b[zeroes] == '0') {
			zeroes++
		}
		return append(b[:digits], b[zeroes:]...)
	}
	return b
}

// appendText appends s in quotes and escaped as AUDITOR does: quotes,
// backslashes and control characters only.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			b = appendEscape(append(b, s[from:i]...), c)
			from = i + 1
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
