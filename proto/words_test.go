package proto_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// unclear are words that do not say who does what. Errors and help name the thing:
// "no leader", "duplicate key", "invalid window", "shown only to readers of all records".
var unclear = regexp.MustCompile(`(?i)\b(nobody|somebody|tells|(is|are) told|there twice|who may|the begin of)\b`)

// The description of the interface is read by people, and the comments of proto/v1 are
// made of it.
func TestDescription_UnclearWords_AreRefused(t *testing.T) {
	for i, line := range strings.Split(string(v1.OpenAPI()), "\n") {
		if word := unclear.FindString(line); word != "" {
			t.Errorf("openapi.yaml:%d: %q: name who or what", i+1, word)
		}
	}
}

// Texts of programs name what they are about. Descriptions, pages and documents are
// read by people too; this looks at strings, where the worst of them stood.
func TestTexts_UnclearWords_AreRefused(t *testing.T) {
	for _, root := range []string{"agent", "aggregator", "hcl", "plugins", "proto"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
				return err
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if word := unclear.FindString(text.Value); word != "" && !strings.Contains(path, "/bench/") { // that knows the user no one
						t.Errorf("%s: %q: name who or what", files.Position(text.Pos()), word)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// hours are other words for core-hours, GPU-hours and CPU-hours.
var hours = regexp.MustCompile(`(?i)\b((core|cores|cpu|gpu)[ ·]hours?|cores?[ *·]h|cores-hours|gpus-hours)\b`)

// The product of an amount and a time has one word in all texts, pages, documents and code.
func TestTexts_UnitsOfUsage_HaveOneWord(t *testing.T) {
	kinds := []string{".go", ".md", ".html", ".js", ".yaml", ".hcl"}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains(kinds, filepath.Ext(path)) || strings.HasSuffix(path, ".min.js") || filepath.Base(path) == "words_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := hours.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: core-hours, GPU-hours or CPU-hours", path, i+1, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
