package hcl

import (
	"strings"
	"testing"
)

func TestCompilePattern_OtherSyntax_SaysHowToWriteItWithout(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?<=/).*?(?=/|$)`: "lookaround, (?=…) or (?<=…), is not supported (RE2): match the text around too and put a group around what you want",
		`a(?=b)`:           "put a group around what you want",
		`(?=Role).*`:       "put a group around what you want",
		`(?!a)b`:           "negative lookaround, (?!…) or (?<!…), is not supported (RE2): test what must not be there",
		`(?<!a)b`:          "test what must not be there",
		`(?>a+)b`:          "write (?:…)",
		`(a)\1`:            `a backreference, \1, is not supported (RE2)`,
		`(a`:               "missing closing )",
		`a**`:              "invalid nested repetition operator: `**`",
		`\q`:               "invalid escape sequence: `\\q`",
		`(?<na me>a)`:      "invalid named capture",
	} {
		re, err := CompilePattern(pattern)
		if err == nil || re != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "invalid pattern ") {
			t.Errorf("%s: %v, want %q", pattern, err, want)
		}
	}
	for _, good := range []string{"", `/([^/]*)`, `(?<name>a)`, `(?P<name>a)`, `(?:a|b)`, `(?i)a`} {
		if _, err := CompilePattern(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestRegex_Lookaround_DiagnosticNamesLineAndRemedy(t *testing.T) {
	for _, call := range []string{`regex("(?<=/)a", "/a")`, `regexall("a(?=b)", "ab")`, `regex_replace("b", "(?!a)b", "c")`, `try(regex("(?<=/).*?(?=/|$)", later.text), "None")`, `[for x in ["a"] : can(regex("(a)\\1", x))]`} {
		_, diags := Parse("a.hcl", []byte("first = 1\nvo = "+call+"\n"))
		if text := diags.Error(); !diags.HasErrors() || !strings.Contains(text, "a.hcl:2") || !strings.Contains(text, "is not supported (RE2)") {
			t.Errorf("%s: %s", call, text)
		}
	}
}
