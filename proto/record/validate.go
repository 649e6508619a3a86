package record

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Limits of what a record may hold.
const (
	MaxGraphemes = 256       // of an id, a key, a value and a name, as in AUDITOR
	MaxID        = 1024      // bytes of a record id
	MaxSize      = 256 << 10 // bytes of a record in its canonical encoding
)

// FieldError says which field of a record is not valid and why. Field is a path
// such as components[1].scores[0].value.
type FieldError struct {
	ID      string // the record's id, as far as it is known
	Field   string
	Problem string
}

// Error names the field and what is wrong with it.
func (e *FieldError) Error() string {
	if e.ID == "" {
		return e.Field + ": " + e.Problem
	}
	return fmt.Sprintf("record %q: %s: %s", e.ID, e.Field, e.Problem)
}

// Validate returns a *[FieldError] for the first rule of AUDITOR or of bursar
// that r breaks: names that are blank, no UTF-8 or longer than [MaxGraphemes],
// an id over [MaxID], amounts and scores below zero or not finite, meta that is
// not sorted or has a key twice, times outside [MinTime, MaxTime], a record over
// [MaxSize]. A stop before the start is valid.
func (r *Record) Validate() error {
	v := validator{id: r.ID}
	v.recordID(r.ID)
	v.validateMeta(r.Meta)
	for i := range r.Components {
		v.validateComponent(i, &r.Components[i])
	}
	v.validateTimes(r)
	if v.err == nil && r.sizeBound() > MaxSize {
		v.failField("record", "is larger than %d bytes", MaxSize)
	}
	return v.asError()
}

// ValidateID returns a *[FieldError] when id is no record id.
func ValidateID(id string) error {
	v := validator{}
	v.recordID(id)
	return v.asError()
}

// Validate returns a *[FieldError] when w is nothing that its origin can say:
// an unknown operation, a stop by a source, a withdrawal by [Pushed], an origin
// without type or agent, an unknown rank, an observation that is no time, a
// record under another id or that is not valid. Whoever takes writes from
// elsewhere asks first and keeps what fails in quarantine.
func (w *Write) Validate() error {
	v := validator{id: w.ID}
	v.recordID(w.ID)
	if w.Op == OpDelete {
		return v.asError()
	}
	v.validateOrigin(w)
	v.validateStatement(w)
	if v.err == nil && w.Op == OpPut {
		return w.Record.Validate()
	}
	return v.asError()
}

func (v *validator) validateOrigin(w *Write) {
	if o := w.Origin; !o.IsPushed() && (o.Agent == "" || o.Type == "") {
		v.failField("origin", "%s has no agent or no type", o)
	}
	if !w.Rank.Valid() {
		v.failField("rank", "%d is no rank", w.Rank)
	}
	if o := w.Version.Observed; o < minObserved || o > int64(MaxTime) {
		v.failField("observed", "%d is no time", o)
	}
}

func (v *validator) validateStatement(w *Write) {
	switch {
	case w.Op != OpPut && w.Op != OpStop && w.Op != OpWithdraw:
		v.failField("op", "%d is no operation", w.Op)
	case w.Op == OpPut && w.Record == nil:
		v.failField("record", "is missing")
	case w.Op == OpPut && w.Record.ID != w.ID:
		v.failField("record_id", "is %q in the record", excerptOf(w.Record.ID))
	case w.Op == OpStop && w.Stop == None:
		v.failField("stop_time", "is missing")
	case !w.saysSomething():
		v.failField("op", "%s cannot say this", w.Origin)
	}
	if w.Op == OpStop {
		v.validateInstant("stop_time", w.Stop)
	}
}

// ValidateName returns what is wrong with s as a key, a value or a name: the
// rule of AUDITOR's ValidName. It returns "" when nothing is.
func ValidateName(s string) string {
	if isPlainName(s) {
		return ""
	}
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	if strings.TrimSpace(s) == "" {
		return "is blank"
	}
	if len(s) > MaxGraphemes && tooLong(s) {
		return fmt.Sprintf("is longer than %d characters", MaxGraphemes)
	}
	return ""
}

// tooLong reports whether s has more than [MaxGraphemes] grapheme clusters, and
// looks no further than that.
func tooLong(s string) bool {
	state := -1
	for range MaxGraphemes {
		_, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		if s == "" {
			return false
		}
	}
	return true
}

// isPlainName is the quick answer for nearly every name: short, printable ASCII with
// something beside blanks.
func isPlainName(s string) bool {
	if len(s) == 0 || len(s) > MaxGraphemes {
		return false
	}
	solid := false
	for i := range len(s) {
		c := s[i]
		if c < 0x20 || c > 0x7e {
			return false
		}
		solid = solid || c != ' '
	}
	return solid
}

// validator keeps the first failure.
type validator struct {
	id  string
	err *FieldError
}

func (v *validator) failField(field, format string, args ...any) {
	if v.err == nil {
		id := strings.ToValidUTF8(v.id[:min(len(v.id), MaxID)], "\uFFFD")
		v.err = &FieldError{ID: id, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
}

// asError returns the failure as an error, so that none is nil.
func (v *validator) asError() error {
	if v.err == nil {
		return nil
	}
	return v.err
}

// validateName checks s; the field's path is only put together when it fails.
func (v *validator) validateName(s string, field func() string) {
	if isPlainName(s) {
		return
	}
	if problem := ValidateName(s); problem != "" {
		v.failField(field(), "%s", problem)
	}
}

func (v *validator) recordID(id string) {
	v.validateName(id, func() string { return "record_id" })
	if len(id) > MaxID {
		v.failField("record_id", "is longer than %d bytes", MaxID)
	}
}

func (v *validator) validateMeta(m Meta) {
	for i := range m {
		e := &m[i]
		v.validateName(e.Key, func() string { return fmt.Sprintf("meta[%q]", e.Key) })
		if i > 0 && m[i-1].Key >= e.Key {
			v.failField(fmt.Sprintf("meta[%q]", e.Key), "duplicate key, or the keys are not sorted")
		}
		for j, value := range e.Values {
			v.validateName(value, func() string { return fmt.Sprintf("meta[%q][%d]", e.Key, j) })
		}
	}
}

func (v *validator) validateComponent(i int, c *Component) {
	at := func(part string) string { return fmt.Sprintf("components[%d].%s", i, part) }
	v.validateName(c.Name, func() string { return at("name") })
	if c.Amount < 0 {
		v.failField(at("amount"), "%d is below zero", c.Amount)
	}
	if c.Kind > Total {
		v.failField(at("kind"), "%d is no kind", c.Kind)
	}
	for j, s := range c.Scores {
		v.validateName(s.Name, func() string { return at(fmt.Sprintf("scores[%d].name", j)) })
		if !(s.Value >= 0) || math.IsInf(s.Value, 0) {
			v.failField(at(fmt.Sprintf("scores[%d].value", j)), "%v is not a finite number of zero or more", s.Value)
		}
	}
}

func (v *validator) validateTimes(r *Record) {
	if r.Start == None {
		v.failField("start_time", "is missing")
	}
	v.validateInstant("start_time", r.Start)
	v.validateInstant("stop_time", r.Stop)
	v.validateInstant("submit_time", r.Submit)
	if r.State != "" {
		v.validateName(r.State, func() string { return "state" })
	}
}

func (v *validator) validateInstant(field string, t Time) {
	if t != None && (t < MinTime || t > MaxTime) {
		v.failField(field, "is outside the years 0 to 9999")
	}
}

// sizeBound is an upper bound of the record's encoded size in bytes.
func (r *Record) sizeBound() int {
	const each = 12 // tags, lengths and numbers
	n := len(r.ID) + len(r.State) + 8*each
	for i := range r.Meta {
		n += len(r.Meta[i].Key) + each
		for _, value := range r.Meta[i].Values {
			n += len(value) + each
		}
	}
	for i := range r.Components {
		n += len(r.Components[i].Name) + 3*each
		for _, s := range r.Components[i].Scores {
			n += len(s.Name) + 2*each
		}
	}
	return n
}
