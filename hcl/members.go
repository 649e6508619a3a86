package hcl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Member is an attribute or a block that is written in a struct that Decode has filled.
type Member struct {
	// Name is the attribute's name or the block's type, and Labels are the block's.
	Name   string
	Labels []string
	// Value is that of an attribute, as JSON; nil: it is a block, which has Members.
	Value   json.RawMessage
	Members []Member
	// Range is where it is written, or else the block that holds it.
	Range Range

	labelNames []string
	many       bool // there may be several
}

// Header is how the member begins: a name, and labels in quotes.
func (m *Member) Header() string {
	parts := []string{m.Name}
	for _, l := range m.Labels {
		parts = append(parts, strconv.Quote(l))
	}
	return strings.Join(parts, " ")
}

// Members returns what is written in the struct that target points to, in the order of
// names; blocks of one type stay in their order. Texts are given also when they are
// sensitive.
func Members(target any) []Member { return objectMembers(structOf(target), Range{}) }

func objectMembers(v reflect.Value, at Range) (out []Member) {
	s := specOf(v.Type())
	at = s.headerOf(v, at)
	for _, name := range s.attrNames {
		if value, where, ok := writtenValue(v.FieldByIndex(s.attrs[name].index)); ok {
			if where == (Range{}) {
				where = cmp.Or(s.placesOf(v)[name], at)
			}
			out = append(out, Member{Name: name, Value: mustJSON(value), Range: where})
		}
	}
	for _, name := range s.typeNames {
		f := s.blocks[name]
		for _, block := range blocksIn(v.FieldByIndex(f.index), f) {
			m := Member{Name: name, labelNames: f.labels, many: f.slice, Members: objectMembers(block, at), Range: at}
			inner := specOf(f.elem)
			for _, l := range inner.labels {
				m.Labels = append(m.Labels, labelText(block.FieldByIndex(l.index)))
				if s, ok := reflect.TypeAssert[String](block.FieldByIndex(l.index)); ok && m.Range == at {
					m.Range = s.Range
				}
			}
			m.Range = inner.headerOf(block, m.Range)
			if len(m.Members) > 0 || f.slice || f.pointer {
				out = append(out, m)
			}
		}
	}
	return out
}

// blocksIn are the structs of a field.
func blocksIn(field reflect.Value, f blockField) (out []reflect.Value) {
	if f.slice {
		for i := range field.Len() {
			out = append(out, reflect.Indirect(field.Index(i)))
		}
		return out
	}
	if f.elem.Kind() != reflect.Struct || f.pointer && field.IsNil() {
		return nil
	}
	return []reflect.Value{reflect.Indirect(field)}
}

// writtenValue is the value of an attribute, where it is written, and whether it is.
func writtenValue(field reflect.Value) (value any, at Range, ok bool) {
	if r := field; r.Kind() == reflect.Struct {
		if r = r.FieldByName("Range"); r.IsValid() {
			at, _ = reflect.TypeAssert[Range](r)
			value = plainValue(field)
			return value, at, at != Range{} && value != "" // an empty text says nothing
		}
	}
	switch field.Kind() { //nolint:exhaustive // the others count as written when they are not zero
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return plainValue(field), at, !field.IsNil()
	}
	return plainValue(field), at, !field.IsZero()
}

// plainValue is a value as encoding/json writes it.
func plainValue(field reflect.Value) any {
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return nil
		}
		return plainValue(field.Elem())
	}
	switch v := field.Interface().(type) {
	case json.Marshaler:
		return v
	case String:
		return v.Value
	case fmt.Stringer:
		return v.String()
	}
	switch field.Kind() { //nolint:exhaustive // the others are as they are
	case reflect.Slice:
		out := make([]any, field.Len())
		for i := range out {
			out[i] = plainValue(field.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for key, value := range field.Seq2() {
			out[key.String()] = plainValue(value)
		}
		return out
	}
	return field.Interface()
}

func labelText(label reflect.Value) string {
	if s, ok := reflect.TypeAssert[String](label); ok {
		return s.Value
	}
	return label.String()
}

// EncodeJSON writes what Members returns as one object: attributes and labels are members
// by their names, blocks are objects, or lists where there may be several. Equal settings
// have equal bytes, wherever they are written.
func EncodeJSON(target any) []byte { return mustJSON(objectOf(Members(target))) }

func objectOf(list []Member) map[string]any {
	out := map[string]any{}
	for i := range list {
		m := &list[i]
		if m.Value != nil {
			out[m.Name] = m.Value
			continue
		}
		block := objectOf(m.Members)
		for k, l := range m.Labels {
			block[m.labelNames[k]] = l
		}
		if !m.many {
			out[m.Name] = block
			continue
		}
		blocks, _ := out[m.Name].([]any)
		out[m.Name] = append(blocks, block)
	}
	return out
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hcl: a value that is not JSON: %v", err))
	}
	return b
}

// MembersOf returns what stands in text, which EncodeJSON has written for a struct like
// that which target points to, without looking at values. What the struct does not know
// is an attribute.
func MembersOf(text []byte, target any) ([]Member, error) {
	return membersOf(text, structOf(target).Type())
}

func membersOf(text []byte, t reflect.Type) (out []Member, err error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	s := specOf(t)
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		f, block := s.blocks[name]
		switch {
		case slices.ContainsFunc(s.labels, func(l labelField) bool { return l.name == name }):
			continue
		case !block:
			out = append(out, Member{Name: name, Value: raw[name]})
			continue
		}
		list := []json.RawMessage{raw[name]}
		if f.slice {
			if err := json.Unmarshal(raw[name], &list); err != nil {
				return nil, err
			}
		}
		for _, x := range list {
			m := Member{Name: name}
			var object map[string]any
			if m.Members, err = membersOf(x, f.elem); err == nil {
				err = json.Unmarshal(x, &object)
			}
			if err != nil {
				return nil, err
			}
			for _, l := range f.labels {
				label, _ := object[l].(string)
				m.Labels = append(m.Labels, label)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// DecodeJSON reads what EncodeJSON wrote into the struct that target points to, as strictly
// as Decode reads a file. The place of a value is name and the header of its block.
func DecodeJSON(name string, text []byte, target any) Diagnostics {
	return decodeObject(text, Range{Filename: name}, structOf(target))
}

// decodeObject reads the whole, or a block, which is at.
func decodeObject(text []byte, at Range, target reflect.Value) (diags Diagnostics) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return unreadableAt(at, "not an object: %v", err)
	}
	s := specOf(target.Type())
	setDefaults(target)
	for i, l := range s.labels {
		var label string
		if err := json.Unmarshal(raw[l.name], &label); err != nil || label == "" {
			diags.Extend(unreadableAt(at, "%s is missing", l.name))
		}
		at.Filename += " " + strconv.Quote(label)
		if label != "" {
			diags.Extend(s.setLabel(target, i, label, at))
		}
		delete(raw, l.name)
	}
	s.setHeader(target, at)
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if f, ok := s.attrs[name]; ok {
			setRange(target, s.attrAt[name], at)
			if err := f.decodeJSON(raw[name], at, target.FieldByIndex(f.index)); err != nil {
				diags.Extend(unreadableAt(at, "%s: %v", name, err))
			} else {
				s.setPlace(target, name, at)
			}
		} else if f, ok := s.blocks[name]; ok {
			diags.Extend(f.decodeJSON(raw[name], Range{Filename: at.Filename + " " + name}, target.FieldByIndex(f.index)))
		} else {
			diags.Extend(unreadableAt(at, "this program does not know %q here", name))
		}
	}
	for _, name := range s.attrNames {
		if _, ok := raw[name]; !ok && !s.attrs[name].optional {
			diags.Extend(unreadableAt(at, "%s is missing", name))
		}
	}
	if v, ok := reflect.TypeAssert[Validator](target.Addr()); ok && !diags.HasErrors() {
		diags.Extend(v.ValidateHCL())
	}
	return diags
}

func unreadableAt(at Range, format string, args ...any) Diagnostics {
	return Diagnostics{Errorf(at, "invalid setting", format, args...)}
}

func (f *attrField) decodeJSON(raw json.RawMessage, at Range, field reflect.Value) error {
	if bytes.Equal(raw, []byte("null")) {
		return errors.New("it is null")
	}
	if field.Kind() != reflect.String && !readsItself(field.Type()) {
		if err := json.Unmarshal(raw, field.Addr().Interface()); err != nil {
			return err
		}
		return f.checkLimits(field)
	}
	v, err := decodeJSON(string(raw))
	if err != nil {
		return err
	}
	if diags := (valueDecoder{}).decodeValue(v, at, field); diags.HasErrors() {
		return errors.New(diags[0].Detail)
	}
	return f.checkLimits(field)
}

// readsItself says whether values of a type, or what it holds, decode themselves from HCL.
func readsItself(t reflect.Type) bool {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return false
	case decodesItself(reflect.New(t).Elem()), t.Implements(reflect.TypeFor[interface{ orOne() }]()):
		return true
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map, t.Kind() == reflect.Pointer:
		return readsItself(t.Elem())
	}
	return false
}

func (f *blockField) decodeJSON(raw json.RawMessage, at Range, field reflect.Value) (diags Diagnostics) {
	list := []json.RawMessage{raw}
	if f.slice {
		if err := json.Unmarshal(raw, &list); err != nil {
			return unreadableAt(at, "not a list: %v", err)
		}
	}
	first := map[string]bool{}
	for _, x := range list {
		elem := f.slotFor(field)
		diags.Extend(decodeObject(x, at, elem))
		var quoted []string
		for _, l := range specOf(f.elem).labels {
			quoted = append(quoted, strconv.Quote(labelText(elem.FieldByIndex(l.index))))
		}
		labels := strings.Join(quoted, " ")
		if f.slice && !f.repeat && labels != "" && first[labels] {
			diags.Extend(unreadableAt(at, "%s is given more than once", labels))
		}
		first[labels] = true
		f.putBlock(field, elem)
	}
	return diags
}
