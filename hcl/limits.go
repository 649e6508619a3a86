package hcl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// limits are what the tags of an attribute say beside its name.
type limits struct {
	fallback, least, most string
	allowed               []string
	match, want           string
	unset, doc            string
}

func limitsOf(f reflect.StructField) limits {
	return limits{
		fallback: f.Tag.Get("default"), least: f.Tag.Get("min"), most: f.Tag.Get("max"),
		allowed: strings.Fields(f.Tag.Get("allowed")), match: f.Tag.Get("match"), want: f.Tag.Get("want"), unset: f.Tag.Get("unset"), doc: f.Tag.Get("doc"),
	}
}

// setDefaults gives the fields of a struct that are zero their defaults, and those of
// blocks that are there whether they are written or not.
func setDefaults(target reflect.Value) {
	s := specOf(target.Type())
	for _, f := range s.attrs {
		if field := target.FieldByIndex(f.index); f.fallback != "" && field.IsZero() {
			fromTag(f.fallback, field)
		}
	}
	for _, b := range s.blocks {
		if !b.slice && !b.pointer && b.elem.Kind() == reflect.Struct {
			setDefaults(target.FieldByIndex(b.index))
		}
	}
}

// fromTag reads the text of a tag into a field. A text that cannot be read is a mistake
// of the program and panics.
func fromTag(text string, field reflect.Value) {
	var diags Diagnostics
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		expr, more := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
		if diags = Diagnostics(more); !diags.HasErrors() {
			v, _ := expr.Value(nil) // what is wrong with it shows in the field
			diags = valueDecoder{}.decodeValue(v, Range{}, field)
		}
	} else {
		diags = valueDecoder{}.decodeValue(cty.StringVal(text), Range{}, field)
	}
	if diags.HasErrors() {
		panic(fmt.Sprintf("hcl: the tag %q: %v", text, diags))
	}
}

// checkLimits says what is wrong with the value of a field.
func (l *limits) checkLimits(field reflect.Value) error {
	if len(l.allowed) > 0 {
		if text := fmt.Sprint(field.Interface()); !slices.Contains(l.allowed, text) {
			return fmt.Errorf("%q is not allowed here; %s", text, DidYouMean(text, l.allowed))
		}
	}
	if l.match != "" {
		if text := fmt.Sprint(field.Interface()); !regexp.MustCompile(`^(?:` + l.match + `)$`).MatchString(text) {
			return fmt.Errorf("%q is not allowed here; use %s", clipText(text), l.want)
		}
	}
	if l.least != "" && l.compareToBound(field, l.least) < 0 || l.most != "" && l.compareToBound(field, l.most) > 0 {
		return fmt.Errorf("must be %s, not %v", l.boundsInWords(), field.Interface())
	}
	return nil
}

// boundsInWords are the bounds in words.
func (l *limits) boundsInWords() string {
	switch {
	case l.least == "":
		return "at most " + l.most
	case l.most == "":
		return "at least " + l.least
	}
	return "between " + l.least + " and " + l.most
}

// compareToBound compares a field with a bound, which is written as the attribute is.
func (l *limits) compareToBound(field reflect.Value, bound string) int {
	other := reflect.New(field.Type()).Elem()
	fromTag(bound, other)
	return cmp.Compare(quantityOf(field), quantityOf(other))
}

func quantityOf(field reflect.Value) float64 {
	switch v := field.Interface().(type) {
	case Duration:
		return float64(v.Duration)
	case time.Duration:
		return float64(v)
	case Size:
		return float64(v.Bytes)
	}
	if field.CanInt() {
		return float64(field.Int())
	}
	return field.Float() // of another kind it panics: the tag is wrong
}

// Setting is an attribute or a block as the tags of a struct describe it.
type Setting struct {
	// Name is the attribute, or block.attribute; of a block the header and { … }.
	Name string
	// Default is as it would be written; "" when there is none.
	Default string
	// Unset says in words what holds without it, where there is no Default.
	Unset string
	// Required says that it has to be written where its block is.
	Required bool
	// Allowed are the values that it may have; nil is any.
	Allowed []string
	// Bounds say how small and large it may be, in words.
	Bounds string
	// Doc says what it means.
	Doc string
}

// Meaning is what the setting means and what is allowed; each of the allowed values is
// shown by value.
func (s Setting) Meaning(value func(string) string) string {
	var parts []string
	if len(s.Allowed) > 0 {
		values := make([]string, len(s.Allowed))
		for i, v := range s.Allowed {
			values[i] = value(v)
		}
		parts = append(parts, "one of "+strings.Join(values, ", "))
	}
	for _, part := range []string{s.Doc, s.Bounds} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// SettingsOf lists the attributes and blocks of the struct that target points to, in the
// order of its fields, those of a block behind it; what has no documentation and no
// default in a block is in the name of the block.
func SettingsOf(target any) []Setting { return settingsOf(structOf(target).Type(), "") }

func settingsOf(t reflect.Type, prefix string) (out []Setting) {
	s := specOf(t)
	for _, f := range reflect.VisibleFields(t) {
		name, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		if b, ok := s.blocks[name]; ok && strings.HasPrefix(kind, "block") {
			block := Setting{Name: blockForm(prefix+name, b.labels), Unset: f.Tag.Get("unset"), Required: !b.slice && !b.pointer && !b.optional, Doc: f.Tag.Get("doc")}
			var parts []Setting
			if b.elem.Kind() == reflect.Struct && b.elem != t {
				parts = settingsOf(b.elem, prefix+name+".")
			}
			var plain []string // what the block's own line explains
			parts = slices.DeleteFunc(parts, func(p Setting) bool {
				if p.Doc+p.Default+p.Unset+p.Bounds == "" && len(p.Allowed) == 0 && !p.Required {
					plain = append(plain, strings.TrimPrefix(p.Name, prefix+name+"."))
					return true
				}
				return false
			})
			if len(plain) > 0 {
				block.Name = strings.Replace(block.Name, "…", strings.Join(plain, ", "), 1)
			}
			out = append(append(out, block), parts...)
			continue
		}
		if a, ok := s.attrs[name]; ok && (kind == "" || kind == "optional") {
			out = append(out, a.settingOf(prefix+name, f.Type))
		}
	}
	return out
}

func (f *attrField) settingOf(name string, t reflect.Type) Setting {
	out := Setting{Name: name, Default: f.fallback, Unset: f.unset, Required: !f.optional, Doc: f.doc}
	switch t.Kind() { //nolint:exhaustive // the others are written as they are
	case reflect.Bool:
		out.Default = cmp.Or(f.fallback, "false")
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float64:
		if t == reflect.TypeFor[time.Duration]() && f.fallback != "" {
			out.Default = quoteText(f.fallback)
		}
	default:
		if f.fallback != "" && f.fallback[0] != '[' && f.fallback[0] != '{' {
			out.Default = quoteText(f.fallback)
		}
	}
	if out.Required {
		out.Default = ""
	}
	if len(f.allowed) > 0 {
		out.Allowed = f.allowed
	}
	if f.least != "" || f.most != "" {
		out.Bounds = f.boundsInWords()
	}
	return out
}

func quoteText(s string) string {
	b, _ := json.Marshal(s) // of a string it cannot fail
	return string(b)
}
