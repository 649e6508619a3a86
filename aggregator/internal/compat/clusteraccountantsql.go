package compat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// inserts calls take for each row that the INSERT statements of a dump put into one of
// the tables. The columns of a table are those that the statement names, or those of the
// definition; of a table without columns they are those of its CREATE TABLE statement,
// which comes first. All other statements are passed over.
func inserts(text string, tables map[string][]string, take func(table string, row sqlRow) error) error {
	return (&sqlScanner{text: text}).inserts(tables, take)
}

func (s *sqlScanner) inserts(tables map[string][]string, take func(table string, row sqlRow) error) error {
	tables = maps.Clone(tables)
	for {
		w := s.next()
		switch {
		case w.kind == sqlEnd:
			return s.err
		case w.kind == sqlWord && strings.EqualFold(w.text, "create"):
			s.create(tables)
			continue
		case w.kind != sqlWord || !strings.EqualFold(w.text, "insert"):
			s.pass(strings.ToLower(w.text))
			s.skip(w)
			continue
		}
		if err := s.insert(tables, take); err != nil {
			return fmt.Errorf("line %d: %w", s.line(), err)
		}
	}
}

// insert reads a statement behind its first word.
func (s *sqlScanner) insert(tables map[string][]string, take func(string, sqlRow) error) error {
	w := s.next()
	for w.kind == sqlWord && (strings.EqualFold(w.text, "into") || strings.EqualFold(w.text, "ignore")) {
		w = s.next()
	}
	w = s.last(w)
	table := strings.ToLower(w.text[strings.LastIndexByte(w.text, '.')+1:])
	columns, ours := tables[table]
	if !ours {
		s.pass("insert into " + table)
		s.skip(w)
		return s.err
	}
	w = s.next()
	if w.is("(") {
		columns = nil
		for w = s.next(); w.kind == sqlWord || w.is(","); w = s.next() {
			if w.kind == sqlWord {
				columns = append(columns, strings.ToLower(w.text))
			}
		}
		w = s.next()
	}
	if columns == nil {
		return fmt.Errorf("unknown columns of %s: dump it with its CREATE TABLE statement, as mysqldump does, or with --complete-insert", table)
	}
	if w.kind != sqlWord || !strings.EqualFold(w.text, "values") {
		return fmt.Errorf("there is %q in place of values for %s", firstOf(w.text, 40), table)
	}
	return s.rows(table, columns, take)
}

// create reads a statement behind its first word. It takes the columns of a table that has
// none.
func (s *sqlScanner) create(tables map[string][]string) {
	w := s.next()
	for w.kind == sqlWord && slices.Contains([]string{"table", "if", "not", "exists"}, strings.ToLower(w.text)) {
		w = s.next()
	}
	w = s.last(w)
	table := strings.ToLower(w.text[strings.LastIndexByte(w.text, '.')+1:])
	columns, ours := tables[table]
	if w = s.next(); !ours || columns != nil || !w.is("(") {
		s.skip(w)
		return
	}
	for depth, first := 1, true; depth > 0 && w.kind != sqlEnd; {
		s.space()
		named := strings.HasPrefix(s.text[min(s.at, len(s.text)):], "`")
		w = s.next()
		switch {
		case w.is("("):
			depth++
		case w.is(")"):
			depth--
		case first && w.kind == sqlWord && (named || !slices.Contains([]string{"primary", "unique", "key", "index", "constraint", "fulltext", "foreign", "check"}, strings.ToLower(w.text))):
			columns = append(columns, strings.ToLower(w.text))
		}
		first = depth == 1 && w.is(",")
	}
	tables[table] = columns
	s.skip(w)
}

// last goes to the end of a name like `database`.`table`, which begins with w.
func (s *sqlScanner) last(w sqlToken) sqlToken {
	for w.kind == sqlWord {
		s.space()
		if !strings.HasSuffix(w.text, ".") && !strings.HasPrefix(s.text[min(s.at, len(s.text)):], ".") {
			break
		}
		w = s.next()
	}
	return w
}

// rows reads (…), (…);.
func (s *sqlScanner) rows(table string, columns []string, take func(string, sqlRow) error) error {
	for w := s.next(); ; w = s.next() {
		switch {
		case w.is(","):
			continue
		case w.is(";") || w.kind == sqlEnd:
			return s.err
		case !w.is("("):
			return fmt.Errorf("there is %q in place of a row of %s", firstOf(w.text, 40), table)
		}
		row, n := sqlRow{}, 0
		for w = s.next(); !w.is(")"); w = s.next() {
			switch {
			case w.kind == sqlEnd:
				return fmt.Errorf("a row of %s has no end", table)
			case w.is(","):
				continue
			case n >= len(columns):
				return fmt.Errorf("a row of %s has more than the %d columns %s", table, len(columns), strings.Join(columns, ", "))
			}
			if w.kind == sqlText || !strings.EqualFold(w.text, "null") {
				row[columns[n]] = w.text
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

func (t sqlToken) is(sign string) bool { return t.kind == sqlSign && t.text == sign }

// sqlScanner cuts SQL into tokens.
type sqlScanner struct {
	text string
	at   int
	err  error

	passed func(line int, statement string) // nil: passed over in silence
	named  map[string]bool                  // statements that passed is not called for again
}

// pass names a statement that is passed over.
func (s *sqlScanner) pass(statement string) {
	if s.passed != nil && !s.named[statement] {
		s.named[statement] = true
		s.passed(s.line(), statement)
	}
}

func (s *sqlScanner) line() int { return 1 + strings.Count(s.text[:min(s.at, len(s.text))], "\n") }

// skip goes behind the end of the statement that w is in.
func (s *sqlScanner) skip(w sqlToken) {
	for !w.is(";") && w.kind != sqlEnd {
		w = s.next()
	}
}

func (s *sqlScanner) next() sqlToken {
	s.space()
	if s.at >= len(s.text) {
		return sqlToken{}
	}
	switch c := s.text[s.at]; {
	case c == '\'' || c == '"':
		return sqlToken{sqlText, s.quoted(c)}
	case c == '`':
		return sqlToken{sqlWord, s.quoted(c)}
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

// space goes over spaces and comments.
func (s *sqlScanner) space() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f", rest[0]) >= 0:
			s.at++
		case rest[0] == '#', strings.HasPrefix(rest, "-- "), strings.HasPrefix(rest, "--\n"):
			s.over(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			s.over(rest, "*/")
		default:
			return
		}
	}
}

func (s *sqlScanner) over(rest, end string) {
	if i := strings.Index(rest, end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.text)
}

// quoted reads a text that begins with a quotation mark; two of them stand for one.
func (s *sqlScanner) quoted(mark byte) string {
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && mark != '`' && s.at+1 < len(s.text):
			s.at++
			b.WriteByte(escaped(s.text[s.at]))
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

// escaped is what a letter behind a backslash stands for.
func escaped(c byte) byte {
	if i := strings.IndexByte("0btnrZ", c); i >= 0 {
		return "\x00\b\t\n\r\x1a"[i]
	}
	return c
}
