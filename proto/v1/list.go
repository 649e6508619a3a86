package v1

import "strings"

// SplitList returns the values of lists as a query writes them: with a comma between two
// values. A comma of a value is written `\,`, and a backslash before a comma `\\`: of the
// backslashes before a comma each two are one of the value, and one more makes the comma a
// part of it. Every other backslash is itself, as in `DOMAIN\user`, so that a text without
// a comma is its only value. An empty text is one empty value. The values of several texts
// follow each other; no text has no values.
//
// The two functions undo each other: JoinList(SplitList(text)...) is text, and
// SplitList(JoinList(values...)) are the values, where there are some.
func SplitList(texts ...string) (values []string) {
	for _, text := range texts {
		var value strings.Builder
		for {
			at := strings.IndexByte(text, ',')
			if at < 0 {
				value.WriteString(text)
				break
			}
			before := strings.TrimRight(text[:at], `\`)
			slashes := at - len(before)
			value.WriteString(text[:len(before)+slashes/2])
			text = text[at+1:]
			if slashes%2 == 1 {
				value.WriteByte(',')
				continue
			}
			values = append(values, value.String())
			value.Reset()
		}
		values = append(values, value.String())
	}
	return values
}

// JoinList writes values as the list that [SplitList] reads. It is how a single value, such
// as the name of a group, is written where a query takes a list.
func JoinList(values ...string) string {
	var list strings.Builder
	for i, value := range values {
		if i > 0 {
			list.WriteByte(',')
		}
		for {
			at := strings.IndexByte(value, ',')
			if at < 0 {
				break
			}
			list.WriteString(value[:at])
			list.WriteString(slashesAtEnd(value[:at]))
			list.WriteString(`\,`)
			value = value[at+1:]
		}
		list.WriteString(value)
		if i < len(values)-1 {
			list.WriteString(slashesAtEnd(value))
		}
	}
	return list.String()
}

func slashesAtEnd(text string) string { return text[len(strings.TrimRight(text, `\`)):] }
