package v1_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var update = flag.Bool("update", false, "write types.go and routes.go")

// The types are those of the description.
func TestTypes_OpenAPI_AreItsSchemas(t *testing.T) {
	compare(t, "types.go", newGenerator(t).types())
}

// compare compares a file with what is made of the description, or writes it.
func compare(t *testing.T, file string, made []byte) {
	t.Helper()
	want, err := format.Source(made)
	if err != nil {
		t.Fatalf("%v\n%s", err, made)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // source code
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from openapi.yaml (%v): run go test ./proto/v1 -update", file, err)
	}
}

// generator makes Go of a description. An object within another is named by its title,
// or else by its place.
type generator struct {
	out  strings.Builder
	done map[string]bool
	root *yaml.Node
	// schemas are those of the description by name.
	schemas *yaml.Node
	// left are types that are to be written.
	left []func()
}

func newGenerator(t *testing.T) *generator {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(v1.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	root := doc.Content[0]
	return &generator{done: map[string]bool{}, root: root, schemas: get(root, "components", "schemas")}
}

// texts are schemas that are plain texts or numbers, or cells of these, other those whose
// types are elsewhere.
var (
	texts = map[string]string{"Name": "string", "Time": "Time", "MaybeTime": "Time", "Column": "string", "Cells": "[]Cell"}
	other = map[string]bool{"NewRecord": true, "Update": true, "Warning": true, "ConfigDocument": true}
)

const generated = "// Code generated from openapi.yaml by go test ./proto/v1 -update. DO NOT EDIT.\n\npackage v1\n\n"

// types are those of the schemas, of bodies and of answers that stand at their routes.
func (g *generator) types() []byte {
	g.out.WriteString(generated + "import \"encoding/json\"\n")
	each(g.schemas, func(name string, s *yaml.Node) {
		if texts[name] == "" && !other[name] {
			g.named(name, s)
		}
	})
	each(get(g.root, "components", "requestBodies"), func(name string, body *yaml.Node) {
		if s := get(body, "content", "application/json", "schema"); text(s, "$ref") == "" {
			g.named(name, s)
		}
	})
	each(get(g.root, "paths"), func(_ string, path *yaml.Node) {
		each(path, func(_ string, op *yaml.Node) {
			for _, p := range items(get(op, "parameters")) {
				g.titled(get(g.resolve(p), "schema"))
			}
			g.titled(get(op, "requestBody", "content", "application/json", "schema"))
			each(get(op, "responses"), func(_ string, r *yaml.Node) { g.titled(get(r, "content", "application/json", "schema")) })
		})
	})
	return []byte(g.out.String())
}

// titled writes the type of a schema that stands at a route.
func (g *generator) titled(s *yaml.Node) {
	if title := text(s, "title"); title != "" && !other[title] {
		g.named(title, s)
	}
}

// named writes a type, and those within it.
func (g *generator) named(name string, s *yaml.Node) {
	if g.done[name] {
		return
	}
	g.done[name] = true
	if get(s, "properties") == nil && get(s, "allOf") == nil {
		g.comment(name, s)
		fmt.Fprintf(&g.out, "type %s %s\n", name, strings.TrimPrefix(g.of(name, s, true), "*"))
		return
	}
	var fields strings.Builder
	g.fields(&fields, name, s)
	g.comment(name, s)
	fmt.Fprintf(&g.out, "type %s struct {\n%s}\n", name, fields.String())
	left := g.left
	g.left = nil
	for _, write := range left {
		write()
	}
}

func (g *generator) comment(name string, s *yaml.Node) {
	g.out.WriteString("\n")
	if about := text(s, "description"); about != "" {
		g.out.WriteString(wrapped(name + ": " + about))
		return
	}
	of := "an answer"
	if get(s, "x-query") != nil {
		of = "a query"
	}
	g.out.WriteString("// " + name + " is a part of " + of + ".\n")
}

func (g *generator) fields(out *strings.Builder, name string, s *yaml.Node) {
	if all := get(s, "allOf"); all != nil {
		for _, part := range all.Content {
			switch {
			case text(part, "$ref") != "":
				fmt.Fprintln(out, base(part))
			case get(part, "anyOf") != nil: // all of its fields, or none
				fmt.Fprintln(out, "*"+base(get(part, "anyOf").Content[0]))
			default:
				g.fields(out, name, part)
			}
		}
		return
	}
	required := map[string]bool{}
	if list := get(s, "required"); list != nil {
		for _, r := range list.Content {
			required[r.Value] = true
		}
	}
	each(get(s, "properties"), func(field string, p *yaml.Node) {
		if about := text(p, "description"); about != "" {
			out.WriteString(wrapped(about))
		}
		of, tag := g.of(name+exported(field), p, false), fmt.Sprintf("json:%q", field)
		switch {
		case get(s, "x-query") != nil:
			tag = fmt.Sprintf("query:%q%s", field, g.limits(p, p))
			if of == "int" { // 0 is a number, too
				of = "*int"
			}
		case !required[field]:
			tag = fmt.Sprintf("json:%q", field+",omitempty")
			if get(p, "properties") != nil || get(g.schemas, base(p), "properties") != nil { // an object that may be missing
				of = "*" + strings.TrimPrefix(of, "*")
			}
		}
		fmt.Fprintf(out, "%s %s `%s`\n", exported(field), of, tag)
	})
}

// of is the type of a schema; name is that of an object in it. A text of an array that
// may be null is a pointer, since "" may stand there too.
func (g *generator) of(name string, s *yaml.Node, item bool) string {
	if text(s, "$ref") != "" {
		if t := texts[base(s)]; t != "" {
			return t
		}
		if other[base(s)] {
			return "json.RawMessage"
		}
		if _, null := kindOf(get(g.schemas, base(s))); null && get(g.schemas, base(s), "properties") != nil {
			return "*" + base(s)
		}
		return base(s)
	}
	for _, kind := range []string{"anyOf", "oneOf", "allOf"} {
		list := get(s, kind)
		if list == nil {
			continue
		}
		star, of := "", ""
		for _, option := range list.Content {
			if text(option, "type") == "null" {
				star = "*"
				continue
			}
			of = g.of(name, option, item)
		}
		if of == "Time" || strings.HasPrefix(of, "*") {
			star = ""
		}
		return star + of
	}
	kind, null := kindOf(s)
	switch kind {
	case "object":
		if get(s, "properties") != nil {
			if title := text(s, "title"); title != "" {
				name = title
			}
			g.left = append(g.left, func() { g.named(name, s) })
			if null {
				return "*" + name
			}
			return name
		}
		if v := get(s, "additionalProperties"); v != nil && v.Kind == yaml.MappingNode {
			return "map[string]" + g.of(name, v, true)
		}
		return "json.RawMessage"
	case "array":
		return "[]" + g.of(singular(name), get(s, "items"), true)
	case "":
		if get(s, "enum") != nil {
			return "string"
		}
		return "json.RawMessage"
	}
	return scalar(s, kind, null, item)
}

func scalar(s *yaml.Node, kind string, null, item bool) string {
	of := map[string]string{"string": "string", "boolean": "bool", "integer": "int", "number": "json.Number"}[kind]
	switch text(s, "format") {
	case "date-time":
		return "Time"
	case "int64", "uint64":
		of = text(s, "format")
	case "double":
		of = "float64"
	case "byte":
		of = "[]byte"
	}
	switch {
	case !null:
		return of
	case of == "string" && !item:
		return "Text"
	}
	return "*" + of
}

// kindOf is what a schema is when it is not null.
func kindOf(s *yaml.Node) (kind string, null bool) {
	t := get(s, "type")
	if t == nil || t.Kind == yaml.ScalarNode {
		return text(s, "type"), false
	}
	for _, k := range t.Content {
		if k.Value == "null" {
			null = true
			continue
		}
		kind = k.Value
	}
	return kind, null
}

func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		var found *yaml.Node
		each(n, func(k string, v *yaml.Node) {
			if k == key {
				found = v
			}
		})
		n = found
	}
	return n
}

func each(n *yaml.Node, yield func(key string, value *yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v := n.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		yield(n.Content[i].Value, v)
	}
}

func text(n *yaml.Node, key string) string {
	if v := get(n, key); v != nil {
		return v.Value
	}
	return ""
}

func base(n *yaml.Node) string {
	ref := text(n, "$ref")
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

func exported(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "openapi":
			out.WriteString("OpenAPI")
		case "cpu", "id", "pi", "su", "url":
			out.WriteString(strings.ToUpper(word))
		default:
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

func singular(name string) string { return strings.TrimSuffix(name, "s") }

func wrapped(about string) string {
	var out strings.Builder
	line := "//"
	for word := range strings.FieldsSeq(about) {
		if len(line)+1+len(word) > 100 {
			out.WriteString(line + "\n")
			line = "//"
		}
		line += " " + word
	}
	return out.String() + line + "\n"
}
