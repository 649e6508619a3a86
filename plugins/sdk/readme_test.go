package sdk_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheActionOfTheREADMEIsTheExampleAndHasLessThanSixtyLines(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\npackage main\n")
	program, _, _ := strings.Cut(rest, "```")
	if n := strings.Count(program, "\n"); n >= 60 {
		t.Errorf("it has %d lines", n)
	}
	const begin = "type mail struct"
	text, err := os.ReadFile("example_action_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(program, begin)
	if _, example, _ := strings.Cut(string(text), begin); !found || shown != example {
		t.Errorf("the README has\n%s", shown)
	}
}
