package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// The fields of a component and of a score; a component of an update has no kind.
const (
	fieldName = iota
	fieldAmount
	fieldScores
	fieldKind
)

const fieldValue = 1

// name reads a string that must be a ValidName.
func (in *jsonReader) name() (string, *JSONError) {
	s, err := in.text("a string")
	if err == nil && in.careful && record.ValidateName(s) != "" {
		err = in.failValue("Parsing '%s' failed", excerpt(s))
	}
	return s, err
}

// count notes one more part and refuses more than any record can have.
func (in *jsonReader) count() *JSONError {
	const most = record.MaxSize / 12
	if in.parts++; in.parts > most {
		return in.fail("record is larger than %d bytes", record.MaxSize)
	}
	return nil
}

func (in *jsonReader) time() (record.Time, *JSONError) {
	s, err := in.text("an RFC 3339 formatted date and time string")
	if err != nil {
		return record.None, err
	}
	t, bad := record.ParseTime(s)
	if bad != nil {
		err = in.failValue("%s", bad.Error())
	}
	return t, err
}

// meta reads the object of lists and sorts it.
func (in *jsonReader) meta() (record.Meta, *JSONError) {
	if err := in.open('{', "a map"); err != nil {
		return nil, err
	}
	for {
		key, more, err := in.key()
		if err == nil && !more {
			break
		}
		if err == nil {
			err = in.metaEntry(key)
		}
		if err != nil {
			return nil, err.in("[%q]", excerpt(key))
		}
	}
	m := record.Meta(in.metas.take())
	if m == nil {
		return record.Meta{}, nil
	}
	byKey := func(a, b record.MetaEntry) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(m, byKey) {
		slices.SortFunc(m, byKey)
	}
	for i := 1; i < len(m); i++ {
		if m[i].Key == m[i-1].Key {
			return nil, in.fail("duplicate field `%s`", excerpt(m[i].Key))
		}
	}
	return m, nil
}

func (in *jsonReader) metaEntry(key string) *JSONError {
	if in.careful && record.ValidateName(key) != "" {
		return in.fail("Parsing '%s' failed", excerpt(key))
	}
	if err := in.count(); err != nil {
		return err
	}
	err := in.list(func() *JSONError {
		value, err := in.name()
		if err == nil {
			err = in.count()
		}
		*in.values.next() = value
		return err
	})
	*in.metas.next() = record.MetaEntry{Key: key, Values: in.values.take()}
	return err
}

func (in *jsonReader) componentList(fields []string) ([]record.Component, *JSONError) {
	err := in.list(func() *JSONError { return in.component(fields, in.components.next()) })
	return in.components.take(), err
}

func (in *jsonReader) component(fields []string, c *record.Component) *JSONError {
	if err := in.count(); err != nil {
		return err
	}
	seen, err := in.object("struct Component", fields, 1<<fieldName|1<<fieldAmount|1<<fieldScores, func(field int) (err *JSONError) {
		switch field {
		case fieldName:
			c.Name, err = in.name()
		case fieldAmount:
			if c.Amount, err = in.whole("i64", 64); err == nil && c.Amount < 0 {
				err = in.failValue("Parsing '%d' failed.", c.Amount)
			}
		case fieldScores:
			err = in.list(func() *JSONError { return in.score(in.scores.next()) })
			c.Scores = in.scores.take()
		case fieldKind:
			c.Kind, err = in.kind()
		}
		return err
	})
	if seen&(1<<fieldKind) == 0 {
		c.Kind = in.kinds[c.Name]
	}
	return err
}

func (in *jsonReader) kind() (record.Kind, *JSONError) {
	s, err := in.text("a string")
	if err != nil {
		return 0, err
	}
	kind, ok := record.ParseKind(s)
	if !ok {
		err = in.failValue("unknown variant `%s`, expected `rate` or `total`", excerpt(s))
	}
	return kind, err
}

func (in *jsonReader) score(score *record.Score) *JSONError {
	if err := in.count(); err != nil {
		return err
	}
	_, err := in.object("struct Score", scoreFields[:], 1<<fieldName|1<<fieldValue, func(field int) (err *JSONError) {
		if field == fieldName {
			score.Name, err = in.name()
			return err
		}
		text, err := in.digits("f64")
		if err != nil {
			return err
		}
		v, bad := strconv.ParseFloat(text, 64)
		if bad != nil {
			return in.fail("number out of range")
		}
		if v < 0 {
			return in.failValue("Parsing '%v' failed.", v)
		}
		score.Value = v + 0 // -0 is 0
		return nil
	})
	return err
}
