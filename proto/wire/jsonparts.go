package wire

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// name reads a string that must be a ValidName.
func (in *jsonReader) name() (string, *JSONError) {
	s, err := in.text()
	if err != nil || !in.careful {
		return s, err
	}
	if record.ValidateName(s) != "" {
		return "", in.failValue("Parsing '%s' failed", excerpt(s))
	}
	return s, nil
}

// count notes one more part and refuses more than any record can have.
func (in *jsonReader) count() *JSONError {
	const most = record.MaxSize / 12
	if in.parts++; in.parts > most {
		return in.fail("record is larger than %d bytes", record.MaxSize)
	}
	return nil
}

// time reads an RFC 3339 time, or null where it may be absent.
func (in *jsonReader) time(optional bool) (record.Time, *JSONError) {
	if optional && in.null() {
		return record.None, nil
	}
	if in.space() != '"' {
		return record.None, in.wrongType("an RFC 3339 formatted date and time string")
	}
	s, err := in.text()
	if err != nil {
		return record.None, err
	}
	t, bad := record.ParseTime(s)
	if bad != nil {
		return record.None, in.failValue("%s", bad.Error())
	}
	return t, nil
}

// meta reads the object of lists, or null, and sorts it.
func (in *jsonReader) meta() (record.Meta, *JSONError) {
	if in.null() {
		return nil, nil
	}
	if err := in.open('{', "a map"); err != nil {
		return nil, err
	}
	sorted, last := true, ""
	for first := true; ; first = false {
		key, more, err := in.key(first)
		if err != nil {
			return nil, err
		}
		if !more {
			return in.sorted(sorted)
		}
		sorted = sorted && (first || last < key)
		last = key
		if err := in.metaEntry(key); err != nil {
			return nil, err.in("[%q]", excerpt(key))
		}
	}
}

func (in *jsonReader) metaEntry(key string) *JSONError {
	if in.careful && record.ValidateName(key) != "" {
		return in.failValue("Parsing '%s' failed", excerpt(key))
	}
	if err := in.count(); err != nil {
		return err
	}
	if err := in.sequence(in.metaValue); err != nil {
		return err
	}
	*in.metas.next() = record.MetaEntry{Key: key, Values: in.values.take()}
	return nil
}

func (in *jsonReader) metaValue() *JSONError {
	value, err := in.name()
	if err == nil {
		err = in.count()
	}
	if err != nil {
		return err
	}
	*in.values.next() = value
	return nil
}

// sequence calls read for each element of a list.
func (in *jsonReader) sequence(read func() *JSONError) *JSONError {
	if err := in.open('[', "a sequence"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := in.element(i == 0)
		if err != nil || !more {
			return err
		}
		if err := read(); err != nil {
			return err.in("[%d]", i)
		}
	}
}

// sorted hands out the meta that was built.
func (in *jsonReader) sorted(already bool) (record.Meta, *JSONError) {
	m := record.Meta(in.metas.take())
	if m == nil {
		return record.Meta{}, nil
	}
	if already {
		return m, nil
	}
	slices.SortFunc(m, func(a, b record.MetaEntry) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(m); i++ {
		if m[i].Key == m[i-1].Key {
			return nil, in.fail("duplicate field `%s`", excerpt(m[i].Key))
		}
	}
	return m, nil
}

// list reads the components.
func (in *jsonReader) list(want shape) ([]record.Component, *JSONError) {
	if want == shapeStored && in.null() {
		return nil, nil
	}
	err := in.sequence(func() *JSONError {
		c := in.components.next()
		if in.usualComponent(c) {
			return nil
		}
		return in.component(want, c)
	})
	if err != nil {
		return nil, err
	}
	return in.components.take(), nil
}

// The fields of a component and of a score that were seen.
const (
	seenName = 1 << iota
	seenAmount
	seenScores
	seenKind
	seenValue
)

// usualComponent reads a component as nearly all writers of JSON write it: these
// fields in this order, without blanks. It reads nothing when it is another, or
// not right.
func (in *jsonReader) usualComponent(c *record.Component) bool {
	from, parts := in.i, in.parts
	in.parts++
	if in.literal(`{"name":`) {
		name, err := in.name()
		if err == nil && in.literal(`,"amount":`) {
			amount, ok := in.short()
			if ok && in.literal(`,"scores":`) {
				scores, err := in.scoreList()
				if err == nil && in.literal("}") {
					c.Name, c.Amount, c.Kind, c.Scores = name, amount, in.kinds[name], scores
					return true
				}
			}
		}
	}
	in.scores.drop()
	in.i, in.parts = from, parts
	return false
}

func (in *jsonReader) component(want shape, c *record.Component) *JSONError {
	if err := in.count(); err != nil {
		return err
	}
	if err := in.open('{', "struct Component"); err != nil {
		return err
	}
	seen := 0
	for first := true; ; first = false {
		key, more, err := in.key(first)
		if err != nil {
			return err
		}
		if !more {
			if seen&seenKind == 0 {
				c.Kind = in.kinds[c.Name]
			}
			return in.completeComponent(seen)
		}
		if err := in.componentField(want, key, &seen, c); err != nil {
			return err
		}
	}
}

func (in *jsonReader) completeComponent(seen int) *JSONError {
	switch {
	case seen&seenName == 0:
		return in.missing("name")
	case seen&seenAmount == 0:
		return in.missing("amount")
	case seen&seenScores == 0:
		return in.missing("scores")
	}
	return nil
}

func (in *jsonReader) componentField(want shape, key string, seen *int, c *record.Component) (err *JSONError) {
	bit := componentBit(want, key)
	if bit == 0 {
		return in.skip(4)
	}
	if err := in.once(bit, key, seen); err != nil {
		return err
	}
	switch bit {
	case seenName:
		c.Name, err = in.name()
	case seenAmount:
		c.Amount, err = in.amount()
	case seenScores:
		c.Scores, err = in.scoreList()
	case seenKind:
		c.Kind, err = in.kind()
	}
	if err != nil {
		return err.in("%s", key)
	}
	return nil
}

func componentBit(want shape, key string) int {
	switch {
	case key == "name":
		return seenName
	case key == "amount":
		return seenAmount
	case key == "scores":
		return seenScores
	case key == "kind" && want != shapeUpdate:
		return seenKind
	}
	return 0
}

func (in *jsonReader) amount() (int64, *JSONError) {
	v, err := in.whole("i64")
	if err == nil && v < 0 {
		err = in.failValue("Parsing '%d' failed.", v)
	}
	return v, err
}

func (in *jsonReader) kind() (record.Kind, *JSONError) {
	s, err := in.text()
	if err != nil {
		return 0, err
	}
	if kind, ok := record.ParseKind(s); ok {
		return kind, nil
	}
	return 0, in.failValue("unknown variant `%s`, expected `rate` or `total`", excerpt(s))
}

func (in *jsonReader) scoreList() ([]record.Score, *JSONError) {
	err := in.sequence(func() *JSONError {
		score := in.scores.next()
		if in.usualScore(score) {
			return nil
		}
		return in.score(score)
	})
	if err != nil {
		return nil, err
	}
	return in.scores.take(), nil
}

// usualScore is to a score what usualComponent is to a component.
func (in *jsonReader) usualScore(score *record.Score) bool {
	from, parts := in.i, in.parts
	in.parts++
	if in.literal(`{"name":`) {
		name, err := in.name()
		if err == nil && in.literal(`,"value":`) {
			value, err := in.scoreValue()
			if err == nil && in.literal("}") {
				score.Name, score.Value = name, value
				return true
			}
		}
	}
	in.i, in.parts = from, parts
	return false
}

func (in *jsonReader) score(score *record.Score) *JSONError {
	if err := in.count(); err != nil {
		return err
	}
	if err := in.open('{', "struct Score"); err != nil {
		return err
	}
	seen := 0
	for first := true; ; first = false {
		key, more, err := in.key(first)
		switch {
		case err != nil:
			return err
		case !more && seen&seenName == 0:
			return in.missing("name")
		case !more && seen&seenValue == 0:
			return in.missing("value")
		case !more:
			return nil
		}
		if err := in.scoreField(key, &seen, score); err != nil {
			return err
		}
	}
}

func (in *jsonReader) scoreField(key string, seen *int, score *record.Score) (err *JSONError) {
	bit := scoreBit(key)
	if bit == 0 {
		return in.skip(6)
	}
	if err := in.once(bit, key, seen); err != nil {
		return err
	}
	if bit == seenName {
		score.Name, err = in.name()
	} else {
		score.Value, err = in.scoreValue()
	}
	if err != nil {
		return err.in("%s", key)
	}
	return nil
}

func scoreBit(key string) int {
	switch key {
	case "name":
		return seenName
	case "value":
		return seenValue
	}
	return 0
}

// scoreValue reads the value of a score, where -0 is 0.
func (in *jsonReader) scoreValue() (float64, *JSONError) {
	v, err := in.float()
	if err == nil && v < 0 {
		err = in.failValue("Parsing '%v' failed.", v)
	}
	return v + 0, err
}
