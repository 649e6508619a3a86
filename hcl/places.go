package hcl

import (
	"fmt"
	"reflect"
	"strconv"
)

// Places are where the header of a block, by the name "", and its labels and attributes are
// written, by their names. An attribute that is null or cannot be read has none, and neither
// has one whose value is a list or a map.
type Places map[string]Range

// Has reports whether a label or an attribute of that name is written.
func (p Places) Has(name string) bool { return p[name] != Range{} }

// Errorf makes an error at the attribute or the label of that name, or where it is not
// written, at the header of the block, which is called block.
func (p Places) Errorf(block, name, format string, args ...any) *Diagnostic {
	if name != "" && p.Has(name) {
		return Errorf(p[name], fmt.Sprintf("invalid value for %q", name), format, args...)
	}
	return Errorf(p[""], "invalid "+block, format, args...)
}

// FileLine is a place as people read it in a sentence: file:line.
func FileLine(r Range) string {
	if r.Start.Line == 0 {
		return r.Filename
	}
	return r.Filename + ":" + strconv.Itoa(r.Start.Line)
}

// placesOf are the places in a struct; nil where it has no field for them.
func (s *spec) placesOf(target reflect.Value) Places {
	if s.places == nil {
		return nil
	}
	return target.FieldByIndex(s.places).Interface().(Places)
}

// setPlace notes where a label, an attribute or the header is written.
func (s *spec) setPlace(target reflect.Value, name string, r Range) {
	if s.places == nil {
		return
	}
	if f, ok := s.attrs[name]; ok {
		if kind := target.FieldByIndex(f.index).Kind(); kind == reflect.Slice || kind == reflect.Map {
			return
		}
	}
	if s.placesOf(target) == nil {
		target.FieldByIndex(s.places).Set(reflect.ValueOf(Places{}))
	}
	s.placesOf(target)[name] = r
}

// setHeader notes where a block begins.
func (s *spec) setHeader(target reflect.Value, r Range) {
	setRange(target, s.defAt, r)
	s.setPlace(target, "", r)
}

// headerOf returns where a block begins; fallback where its struct has no field for that.
func (s *spec) headerOf(target reflect.Value, fallback Range) Range {
	switch {
	case s.defAt != nil:
		return target.FieldByIndex(s.defAt).Interface().(Range)
	case s.places != nil:
		return s.placesOf(target)[""]
	}
	return fallback
}
