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

// readName reads a string that must be a ValidName.
func (in *jsonReader) readName() (string, *JSONError) {
	s, err := in.readText("a string")
	if err == nil && in.careful && record.ValidateName(s) != "" {
		err = in.failValue("Parsing '%s' failed", excerptOf(s))
	}
	return s, err
}

// countPart notes one more part and refuses more than any record can have.
func (in *jsonReader) countPart() *JSONError {
	const most = record.MaxSize / 12
	if in.parts++; in.parts > most {
		return in.failBehind("record is larger than %d bytes", record.MaxSize)
	}
	return nil
}

func (in *jsonReader) readTime() (record.Time, *JSONError) {
	s, err := in.readText("an RFC 3339 formatted date and time string")
	if err != nil {
		return record.None, err
	}
	t, bad := record.ParseTime(s)
	if bad != nil {
		err = in.failValue("%s", bad.Error())
	}
	return t, err
}

// readMeta reads the object of lists and sorts it.
func (in *jsonReader) readMeta() (record.Meta, *JSONError) {
	if err := in.openBracket('{', "a map"); err != nil {
		return nil, err
	}
	for {
		key, more, err := in.readKey()
		if err == nil && !more {
			break
		}
		if err == nil {
			err = in.metaEntry(key)
		}
		if err != nil {
			return nil, err.prependPath("[%q]", excerptOf(key))
		}
	}
	m := record.Meta(in.metas.builtElements())
	if m == nil {
		return record.Meta{}, nil
	}
	byKey := func(a, b record.MetaEntry) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(m, byKey) {
		slices.SortFunc(m, byKey)
	}
	for i := 1; i < len(m); i++ {
		if m[i].Key == m[i-1].Key {
			return nil, in.failBehind("duplicate field `%s`", excerptOf(m[i].Key))
		}
	}
	return m, nil
}

func (in *jsonReader) metaEntry(key string) *JSONError {
	if in.careful && record.ValidateName(key) != "" {
		return in.failBehind("Parsing '%s' failed", excerptOf(key))
	}
	if err := in.countPart(); err != nil {
		return err
	}
	err := in.readList(func() *JSONError {
		value, err := in.readName()
		if err == nil {
			err = in.countPart()
		}
		*in.values.nextElement() = value
		return err
	})
	*in.metas.nextElement() = record.MetaEntry{Key: key, Values: in.values.builtElements()}
	return err
}

func (in *jsonReader) componentList(fields []string) ([]record.Component, *JSONError) {
	err := in.readList(func() *JSONError { return in.readComponent(fields, in.components.nextElement()) })
	return in.components.builtElements(), err
}

func (in *jsonReader) readComponent(fields []string, c *record.Component) *JSONError {
	if err := in.countPart(); err != nil {
		return err
	}
	seen, err := in.readObject("struct Component", fields, 1<<fieldName|1<<fieldAmount|1<<fieldScores, func(field int) (err *JSONError) {
		switch field {
		case fieldName:
			c.Name, err = in.readName()
		case fieldAmount:
			if c.Amount, err = in.readInteger("i64", 64); err == nil && c.Amount < 0 {
				err = in.failValue("Parsing '%d' failed.", c.Amount)
			}
		case fieldScores:
			err = in.readList(func() *JSONError { return in.readScore(in.scores.nextElement()) })
			c.Scores = in.scores.builtElements()
		case fieldKind:
			c.Kind, err = in.readKind()
		}
		return err
	})
	if seen&(1<<fieldKind) == 0 {
		c.Kind = in.kinds[c.Name]
	}
	return err
}

func (in *jsonReader) readKind() (record.Kind, *JSONError) {
	s, err := in.readText("a string")
	if err != nil {
		return 0, err
	}
	kind, ok := record.ParseKind(s)
	if !ok {
		err = in.failValue("unknown variant `%s`, expected `rate` or `total`", excerptOf(s))
	}
	return kind, err
}

func (in *jsonReader) readScore(score *record.Score) *JSONError {
	if err := in.countPart(); err != nil {
		return err
	}
	_, err := in.readObject("struct Score", scoreFields[:], 1<<fieldName|1<<fieldValue, func(field int) (err *JSONError) {
		if field == fieldName {
			score.Name, err = in.readName()
			return err
		}
		text, err := in.readDigits("f64")
		if err != nil {
			return err
		}
		v, bad := strconv.ParseFloat(text, 64)
		if bad != nil {
			return in.failBehind("number out of range")
		}
		if v < 0 {
			return in.failValue("Parsing '%v' failed.", v)
		}
		score.Value = v + 0 // -0 is 0
		return nil
	})
	return err
}
