package mapping

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Error says which part of a mapping fails for a job.
type Error struct {
	Part     string    // for example component "Cores" amount
	Place    hcl.Range // where that expression is written
	RecordID string    // as far as it is known
	Err      error
}

// Error names the part, its place and the problem.
func (e *Error) Error() string {
	if e.Place.Filename == "" {
		return fmt.Sprintf("%s: %s", e.Part, e.Err)
	}
	return fmt.Sprintf("%s (%s): %s", e.Part, e.Place, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Map returns the record of a job that is valid. Keep is false when the mapping's
// condition leaves the job out; then only the record's id is set,
// and that to "" when it cannot be told. The error is an *[Error].
func (m *Mapper) Map(job *bursarv1.Job) (r record.Record, keep bool, err error) {
	b := builder{job: job}
	if keep = b.evalCondition("when", m.when); !keep && b.err == nil {
		r.ID, _ = m.ID(job) // a job that is left out need not have one
		return r, false, nil
	}
	r.ID = b.evalText("id", m.id)
	r.Start, r.Stop, r.Submit = b.evalTime("start", m.start), b.evalTime("stop", m.stop), b.evalTime("submit", m.submit)
	r.State = b.evalText("state", m.state)
	r.Exit = b.evalExit(m)
	r.Meta = b.evalMeta(m)
	r.Components = b.evalComponents(m)
	if b.err == nil && r.Start == record.None {
		b.setError("start", m.start, fmt.Errorf("it is null, and a record needs a start"))
	}
	if b.err == nil {
		if err := m.validateRecord(&r); err != nil {
			b.err = &Error{Part: "record", RecordID: r.ID, Err: err}
		}
	}
	if b.err != nil {
		b.err.RecordID = r.ID
		return r, false, b.err
	}
	return r, keep, nil
}

// validateRecord also refuses a run that ends before it starts: AUDITOR's interface takes such a
// record, and what is imported from it is kept, but a scheduler that says so has a wrong
// time, so its usage is unknown and not 0.
func (m *Mapper) validateRecord(r *record.Record) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if r.Negative() && !m.imported {
		return &record.FieldError{ID: r.ID, Field: "stop_time", Problem: fmt.Sprintf(
			"%s is before start_time %s, so the usage is unknown; correct the times where the scheduler keeps them and collect the job again", r.Stop, r.Start)}
	}
	return nil
}

// isMeasurement reports whether default mappings have a measurement in a component that counts
// no total: memory that was used, and what is known of GPUs only where that was measured.
func isMeasurement(component string) bool {
	return component == "MemoryUsed" || component == "GPUMemory" || component == "GPUMemoryUsed"
}

// Lacking returns the components of resources that r, which Map made of the job, does
// not have because the job does not say how much: those whose condition fails and whose
// amount is null or cannot be computed. A component that counts a total, memory that was used, or
// memory of GPUs, is a measurement and not a resource: that it was not made is common. Of components with
// amounts, see [Mapper.Unread].
func (m *Mapper) Lacking(job *bursarv1.Job, r *record.Record) (names []string) {
	for i := range m.components {
		c := &m.components[i]
		if c.amount == nil || c.kind == record.Total || isMeasurement(c.name) || r.Component(c.name) != nil || slices.Contains(names, c.name) {
			continue
		}
		if v, err := c.amount.eval(job); err != nil || v.kind == kindNull {
			names = append(names, c.name)
		}
	}
	return names
}

// ID returns the record id of a job. The error is an *[Error].
func (m *Mapper) ID(job *bursarv1.Job) (string, error) {
	b := builder{job: job}
	id := b.evalText("id", m.id)
	if b.err != nil {
		return "", b.err
	}
	if err := record.ValidateID(id); err != nil {
		return "", &Error{Part: "id", Place: m.id.sourceRange(), RecordID: id, Err: err}
	}
	return id, nil
}

// Start returns when a job began, also of one that the mapping leaves out; None where
// that cannot be told.
func (m *Mapper) Start(job *bursarv1.Job) record.Time { return timeOf(job, "start", m.start) }

// Submit returns when a job was submitted, likewise.
func (m *Mapper) Submit(job *bursarv1.Job) record.Time { return timeOf(job, "submit", m.submit) }

func timeOf(job *bursarv1.Job, part string, p program) record.Time {
	b := builder{job: job}
	if t := b.evalTime(part, p); b.err == nil {
		return t
	}
	return record.None
}

// builder evaluates the parts of one record and keeps the first failure.
type builder struct {
	job *bursarv1.Job
	err *Error
}

func (b *builder) setError(part string, p program, err error) {
	if b.err == nil {
		b.err = &Error{Part: part, Place: p.sourceRange(), Err: err}
	}
}

// evalPart returns the value of p; null without one and after a failure.
func (b *builder) evalPart(part string, p program) value {
	if p == nil || b.err != nil {
		return value{}
	}
	v, err := p.eval(b.job)
	if err != nil {
		b.setError(part, p, err)
	}
	return v
}

func (b *builder) setTypeError(part string, p program, v value, want string) {
	b.setError(part, p, fmt.Errorf("it is %q, want %s", v, want))
}

func (b *builder) evalText(part string, p program) string {
	v := b.evalPart(part, p)
	switch v.kind {
	case kindNull:
		return ""
	case kindOther:
		b.setTypeError(part, p, v, "a text")
	}
	return v.String()
}

// evalCondition evaluates a condition; it is true without an expression.
func (b *builder) evalCondition(part string, p program) bool {
	if p == nil || b.err != nil {
		return b.err == nil
	}
	v := b.evalPart(part, p)
	yes, ok := v.asBool()
	if !ok {
		b.setTypeError(part, p, v, "true or false")
	}
	return yes
}

func (b *builder) evalTime(part string, p program) record.Time {
	v := b.evalPart(part, p)
	if v.kind == kindNull {
		return record.None
	}
	t, ok := v.asTime()
	if !ok {
		b.setTypeError(part, p, v, "a time: RFC 3339 text, or seconds since 1970")
	}
	return t
}

func (b *builder) evalExit(m *Mapper) record.Exit {
	code, signal := b.evalPart("exit_code", m.code), b.evalPart("exit_signal", m.signal)
	if code.kind == kindNull && signal.kind == kindNull {
		return record.Exit{}
	}
	return record.Exit{Known: true, Code: b.evalInt32("exit_code", m.code, code), Signal: b.evalInt32("exit_signal", m.signal, signal)}
}

// evalInt32 reads a number of 32 bits; null is 0.
func (b *builder) evalInt32(part string, p program, v value) int32 {
	if v.kind == kindNull {
		return 0
	}
	n, ok := v.asInteger()
	if !ok || n != int64(int32(n)) {
		b.setTypeError(part, p, v, "a number of 32 bits")
	}
	return int32(n)
}

// evalComponents makes the components of the lists and of the blocks; a name that the record
// block has is not taken from the default mapping.
func (b *builder) evalComponents(m *Mapper) []record.Component {
	base := b.evalList(m.listBase)
	over := b.evalList(m.listOver)
	var blocks []record.Component
	for i := range m.components {
		switch c := &m.components[i]; {
		case c.isEach():
			blocks = b.appendEach(m, c, over, blocks)
		case c.mine || len(over) == 0 || !containsComponent(over, c.name):
			blocks = b.appendComponent(c, blocks)
		}
	}
	if len(base) == 0 && len(over) == 0 {
		return blocks
	}
	base = slices.DeleteFunc(base, func(c record.Component) bool {
		return containsComponent(over, c.Name) || m.hasComponent(c.Name) || containsComponent(blocks, c.Name)
	})
	return slices.Concat(base, over, blocks)
}

// hasComponent says whether a block has a component by its full name.
func (m *Mapper) hasComponent(component string) bool {
	for i := range m.components {
		if c := &m.components[i]; c.name == component && !c.isEach() {
			return true
		}
	}
	return false
}

func containsComponent(list []record.Component, name string) bool {
	return slices.ContainsFunc(list, func(c record.Component) bool { return c.Name == name })
}

// evalList reads the components that one expression makes: a list of objects as AUDITOR has
// them, or its JSON.
func (b *builder) evalList(p program) []record.Component {
	v := b.evalPart("components", p)
	if v.kind == kindOther {
		text, err := ctyjson.Marshal(v.other, v.other.Type())
		if err != nil {
			b.setError("components", p, err)
		}
		v = value{kind: kindText, text: string(text)}
	}
	switch v.kind {
	case kindNull:
		return nil
	case kindText:
		list, err := wire.DecodeComponentsJSON(v.text)
		if err != nil {
			b.setError("components", p, err)
		}
		return list
	}
	b.setTypeError("components", p, v, "a list of components")
	return nil
}

// appendComponent appends a component whose condition holds.
func (b *builder) appendComponent(c *component, to []record.Component) []record.Component {
	if c.amounts != nil {
		for _, e := range b.amountEntries(c) {
			if e.problem == "" && e.amount > 0 {
				to = append(to, record.Component{Name: c.name, Amount: e.amount, Kind: c.kind, Scores: b.evalScores(c)})
			}
		}
		return to
	}
	if c.when != nil && !b.evalCondition(c.whenPart, c.when) {
		return to
	}
	v := b.evalPart(c.amountPart, c.amount)
	amount, ok := v.asInteger()
	if !ok && b.err == nil {
		b.setTypeError(c.amountPart, c.amount, v, "a number; a when can leave the component out")
	}
	return append(to, record.Component{Name: c.name, Amount: amount, Kind: c.kind, Scores: b.evalScores(c)})
}

// evalScores returns the scores of a component whose conditions hold.
func (b *builder) evalScores(c *component) (scores []record.Score) {
	for i := range c.scores {
		s := &c.scores[i]
		if s.when != nil && !b.evalCondition(s.whenPart, s.when) {
			continue
		}
		v := b.evalPart(s.valuePart, s.value)
		f, ok := v.asNumber()
		if !ok && b.err == nil {
			b.setTypeError(s.valuePart, s.value, v, "a number; a when can leave the score out")
		}
		scores = append(scores, record.Score{Name: s.name, Value: f})
	}
	return scores
}

// evalMeta makes the keys that are listed, and what expressions give for the job; a key that the
// record block has is not taken from the default mapping.
func (b *builder) evalMeta(m *Mapper) record.Meta {
	over, decided := b.metaAll(m.metaOver)
	meta := make(record.Meta, 0, len(m.meta))
	for _, p := range m.meta {
		if _, ok := decided[p.key]; ok && !p.mine {
			continue
		}
		values := b.metaValues(p.part, p.value, b.evalPart(p.part, p.value))
		if len(values) > 0 {
			meta = append(meta, record.MetaEntry{Key: p.key, Values: values})
		}
	}
	if m.metaBase == nil && m.metaOver == nil {
		return meta
	}
	base, _ := b.metaAll(m.metaBase)
	for _, e := range base {
		_, ok := decided[e.Key]
		if !ok && !slices.ContainsFunc(m.meta, func(p metaProgram) bool { return p.key == e.Key }) {
			meta = append(meta, e)
		}
	}
	return append(meta, over...).Sorted()
}

// metaValues are the values of one key: a plain value or a list; null and blank texts are
// left out.
func (b *builder) metaValues(part string, p program, v value) []string {
	switch v.kind {
	case kindNull:
		return nil
	case kindOther:
		return b.elementTexts(part, p, v.other)
	}
	text := v.String()
	if isBlank(text) {
		return nil
	}
	return []string{text}
}

func isBlank(s string) bool {
	for _, r := range s {
		if r != ' ' && r != '\t' && r != '\n' && r != '\r' {
			return false
		}
	}
	return true
}

func (b *builder) elementTexts(part string, p program, v cty.Value) []string {
	if !v.CanIterateElements() || v.Type().IsObjectType() || v.Type().IsMapType() {
		b.setError(part, p, fmt.Errorf("it is %s, want a text or a list of texts", v.Type().FriendlyName()))
		return nil
	}
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		item := fromCty(e)
		if item.kind == kindOther {
			b.setError(part, p, fmt.Errorf("an element is %s, want a text", e.Type().FriendlyName()))
			return nil
		}
		if item.kind != kindNull && !isBlank(item.String()) {
			out = append(out, item.String())
		}
	}
	return out
}

// metaAll evaluates a meta that is one expression. It also returns the keys that the
// expression sets, including those set to null.
func (b *builder) metaAll(p program) (record.Meta, map[string]struct{}) {
	v := b.evalPart("meta", p)
	if v.kind == kindNull {
		return nil, nil
	}
	if v.kind != kindOther || !v.other.Type().IsObjectType() && !v.other.Type().IsMapType() {
		b.setTypeError("meta", p, v, "an object of texts or lists of texts")
		return nil, nil
	}
	var meta record.Meta
	decided := map[string]struct{}{}
	for it := v.other.ElementIterator(); it.Next(); {
		key, e := it.Element()
		name := key.AsString()
		decided[name] = struct{}{}
		if values := b.metaValues("meta "+name, p, fromCty(e)); len(values) > 0 {
			meta = append(meta, record.MetaEntry{Key: name, Values: values})
		}
	}
	return meta, decided
}
