package compat

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// readInserts calls take for each row that the INSERT statements of a dump put into one of
// the tables. The columns of a table are those that the statement names, or those of the
// definition; of a table without columns they are those of its CREATE TABLE statement,
// which comes first. All other statements are passed over.
func readInserts(text string, tables map[string][]string, take func(table string, row sqlRow) error) error {
	return (&sqlScanner{text: text}).readInserts(tables, take)
}

func (s *sqlScanner) readInserts(tables map[string][]string, take func(table string, row sqlRow) error) error {
	tables = maps.Clone(tables)
	for {
		w := s.nextToken()
		switch {
		case w.kind == sqlEnd:
			return s.err
		case w.kind == sqlWord && strings.EqualFold(w.text, "create"):
			s.readCreate(tables)
			continue
		case w.kind != sqlWord || !strings.EqualFold(w.text, "insert"):
			s.passOver(strings.ToLower(w.text))
			s.skipStatement(w)
			continue
		}
		if err := s.readInsert(tables, take); err != nil {
			return fmt.Errorf("line %d: %w", s.lineNumber(), err)
		}
	}
}

// readInsert reads a statement behind its first word.
func (s *sqlScanner) readInsert(tables map[string][]string, take func(string, sqlRow) error) error {
	w := s.nextToken()
	for w.kind == sqlWord && (strings.EqualFold(w.text, "into") || strings.EqualFold(w.text, "ignore")) {
		w = s.nextToken()
	}
	w = s.lastOfName(w)
	table := strings.ToLower(w.text[strings.LastIndexByte(w.text, '.')+1:])
	columns, ours := tables[table]
	if !ours {
		s.passOver("insert into " + table)
		s.skipStatement(w)
		return s.err
	}
	w = s.nextToken()
	if w.isSign("(") {
		columns = nil
		for w = s.nextToken(); w.kind == sqlWord || w.isSign(","); w = s.nextToken() {
			if w.kind == sqlWord {
				columns = append(columns, strings.ToLower(w.text))
			}
		}
		w = s.nextToken()
	}
	if columns == nil {
		return fmt.Errorf("unknown columns of %s: dump it with its CREATE TABLE statement, as mysqldump does, or with --complete-insert", table)
	}
	if w.kind != sqlWord || !strings.EqualFold(w.text, "values") {
		return fmt.Errorf("there is %q in place of values for %s", firstOf(w.text, 40), table)
	}
	return s.readRows(table, columns, take)
}

// readCreate reads a statement behind its first word. It takes the columns of a table that has
// none.
func (s *sqlScanner) readCreate(tables map[string][]string) {
	w := s.nextToken()
	for w.kind == sqlWord && slices.Contains([]string{"table", "if", "not", "exists"}, strings.ToLower(w.text)) {
		w = s.nextToken()
	}
	w = s.lastOfName(w)
	table := strings.ToLower(w.text[strings.LastIndexByte(w.text, '.')+1:])
	columns, ours := tables[table]
	if w = s.nextToken(); !ours || columns != nil || !w.isSign("(") {
		s.skipStatement(w)
		return
	}
	for depth, first := 1, true; depth > 0 && w.kind != sqlEnd; {
		s.skipSpace()
		named := strings.HasPrefix(s.text[min(s.at, len(s.text)):], "`")
		w = s.nextToken()
		switch {
		case w.isSign("("):
			depth++
		case w.isSign(")"):
			depth--
		case first && w.kind == sqlWord && (named || !slices.Contains([]string{"primary", "unique", "key", "index", "constraint", "fulltext", "foreign", "check"}, strings.ToLower(w.text))):
			columns = append(columns, strings.ToLower(w.text))
		}
		first = depth == 1 && w.isSign(",")
	}
	tables[table] = columns
	s.skipStatement(w)
}

// lastOfName goes to the end of a name like `database`.`table`, which begins with w.
func (s *sqlScanner) lastOfName(w sqlToken) sqlToken {
	for w.kind == sqlWord {
		s.skipSpace()
		if !strings.HasSuffix(w.text, ".") && !strings.HasPrefix(s.text[min(s.at, len(s.text)):], ".") {
			break
		}
		w = s.nextToken()
	}
	return w
}

// readRows reads (…), (…);.
func (s *sqlScanner) readRows(table string, columns []string, take func(string, sqlRow) error) error {
	for w := s.nextToken(); ; w = s.nextToken() {
		switch {
		case w.isSign(","):
			continue
		case w.isSign(";") || w.kind == sqlEnd:
			return s.err
		case !w.isSign("("):
			return fmt.Errorf("there is %q in place of a row of %s", firstOf(w.text, 40), table)
		}
		row, n := sqlRow{}, 0
		for w = s.nextToken(); !w.isSign(")"); w = s.nextToken() {
			switch {
			case w.kind == sqlEnd:
				return fmt.Errorf("a row of %s has no end", table)
			case w.isSign(","):
				continue
			case w.kind == sqlWord && (strings.HasPrefix(w.text, "_") || strings.EqualFold(w.text, "b")) && s.quoteFollows():
				continue // _binary and the like say what the text behind it is
			case n >= len(columns):
				return fmt.Errorf("a row of %s has more than the %d columns %s", table, len(columns), strings.Join(columns, ", "))
			}
			if w.kind == sqlText || !strings.EqualFold(w.text, "null") {
				row[columns[n]] = w.value()
			}
			n++
		}
		if n < len(columns) {
			return fmt.Errorf("a row of %s has %d values, and there are the columns %s", table, n, strings.Join(columns, ", "))
		}
		if err := take(table, row); err != nil {
			return err
		}
	}
}

// sqlToken is a word, a text in quotes, or a sign.
type sqlToken struct {
	kind sqlKind
	text string
}

type sqlKind int

const (
	sqlEnd sqlKind = iota
	sqlWord
	sqlText
	sqlSign
)

func (t sqlToken) isSign(sign string) bool { return t.kind == sqlSign && t.text == sign }

// value is what a token stands for: bytes for 0x…, as dumps write them.
func (t sqlToken) value() string {
	if digits, is := strings.CutPrefix(t.text, "0x"); is && t.kind == sqlWord {
		if b, err := hex.DecodeString(digits); err == nil {
			return string(b)
		}
	}
	return t.text
}

// sqlScanner cuts SQL into tokens.
type sqlScanner struct {
	text string
	at   int
	err  error

	passed func(line int, statement string) // nil: passed over in silence
	named  map[string]bool                  // statements that passed is not called for again
}

// passOver names a statement that is passed over.
func (s *sqlScanner) passOver(statement string) {
	if s.passed != nil && !s.named[statement] {
		s.named[statement] = true
		s.passed(s.lineNumber(), statement)
	}
}

func (s *sqlScanner) lineNumber() int {
	return 1 + strings.Count(s.text[:min(s.at, len(s.text))], "\n")
}

// skipStatement goes behind the end of the statement that w is in.
func (s *sqlScanner) skipStatement(w sqlToken) {
	for !w.isSign(";") && w.kind != sqlEnd {
		w = s.nextToken()
	}
}

// quoteFollows reports whether a text in quotes comes next.
func (s *sqlScanner) quoteFollows() bool {
	s.skipSpace()
	return strings.HasPrefix(s.text[min(s.at, len(s.text)):], "'")
}

func (s *sqlScanner) nextToken() sqlToken {
	s.skipSpace()
	if s.at >= len(s.text) {
		return sqlToken{}
	}
	switch c := s.text[s.at]; {
	case c == '\'' || c == '"':
		return sqlToken{sqlText, s.readQuoted(c)}
	case c == '`':
		return sqlToken{sqlWord, s.readQuoted(c)}
	case sqlLetter(c):
		from := s.at
		for s.at < len(s.text) && sqlLetter(s.text[s.at]) {
			s.at++
		}
		return sqlToken{sqlWord, s.text[from:s.at]}
	}
	s.at++
	return sqlToken{sqlSign, s.text[s.at-1 : s.at]}
}

func sqlLetter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '-' || c == '+' || c >= 0x80
}

// skipSpace goes over spaces and comments.
func (s *sqlScanner) skipSpace() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f", rest[0]) >= 0:
			s.at++
		case rest[0] == '#', strings.HasPrefix(rest, "-- "), strings.HasPrefix(rest, "--\n"):
			s.skipOver(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			s.skipOver(rest, "*/")
		default:
			return
		}
	}
}

func (s *sqlScanner) skipOver(rest, end string) {
	if i := strings.Index(rest, end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.text)
}

// readQuoted reads a text that begins with a quotation mark; two of them stand for one.
func (s *sqlScanner) readQuoted(mark byte) string {
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && mark != '`' && s.at+1 < len(s.text):
			s.at++
			b.WriteByte(unescape(s.text[s.at]))
		case c != mark:
			b.WriteByte(c)
		case s.at+1 < len(s.text) && s.text[s.at+1] == mark:
			s.at++
			b.WriteByte(c)
		default:
			s.at++
			return b.String()
		}
	}
	s.err = fmt.Errorf("a text in %c has no end", mark)
	return b.String()
}

// unescape is what a letter behind a backslash stands for.
func unescape(c byte) byte {
	if i := strings.IndexByte("0btnrZ", c); i >= 0 {
		return "\x00\b\t\n\r\x1a"[i]
	}
	return c
}
