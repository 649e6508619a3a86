package hcl

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// attrField is a struct field that an attribute fills.
type attrField struct {
	index    []int
	optional bool
	limits
}

// blockField is a struct field that blocks of one type fill.
type blockField struct {
	index    []int
	elem     reflect.Type // without slice and pointer
	slice    bool
	pointer  bool
	optional bool
	repeat   bool
	labels   []string
}

// spec is what the tags of a struct ask for.
type spec struct {
	attrs     map[string]attrField
	blocks    map[string]blockField
	labels    []string
	labelAt   [][]int
	ranges    map[string][]rangeField // by kind of range
	remain    []int
	body      []int
	attrNames []string
	typeNames []string
}

type rangeField struct {
	name  string
	index []int
}

// specOf reads the tags of a struct, those of structs that it embeds included. Wrong tags are a mistake of the program
// and panic.
func specOf(t reflect.Type) *spec {
	s := &spec{
		attrs: map[string]attrField{}, blocks: map[string]blockField{},
		ranges: map[string][]rangeField{},
	}
	for _, f := range reflect.VisibleFields(t) {
		if tag := f.Tag.Get("hcl"); tag != "" {
			s.add(t, f, tag)
		}
	}
	for n := range s.attrs {
		s.attrNames = append(s.attrNames, n)
	}
	for n := range s.blocks {
		s.typeNames = append(s.typeNames, n)
	}
	slices.Sort(s.attrNames)
	slices.Sort(s.typeNames)
	return s
}

func (s *spec) add(t reflect.Type, f reflect.StructField, tag string) {
	i := f.Index
	name, rest, _ := strings.Cut(tag, ",")
	kind, options, _ := strings.Cut(rest, ",")
	switch kind {
	case "", "attr":
		s.attrs[name] = attrField{index: i, optional: f.Type.Kind() == reflect.Pointer, limits: limitsOf(f)}
	case "optional":
		s.attrs[name] = attrField{index: i, optional: true, limits: limitsOf(f)}
	case "block":
		s.blocks[name] = blockFieldOf(f, i, options)
	case "label":
		s.labels, s.labelAt = append(s.labels, name), append(s.labelAt, i)
	case "remain":
		s.remain = i
	case "body":
		s.body = i
	case "def_range", "type_range", "label_range", "attr_range", "attr_name_range", "attr_value_range":
		s.ranges[kind] = append(s.ranges[kind], rangeField{name, i})
	default:
		panic(fmt.Sprintf("hcl: field %s.%s has the unknown tag %q", t, f.Name, tag))
	}
}

var (
	bodyType  = reflect.TypeFor[hcl2.Body]()
	exprType  = reflect.TypeFor[hcl2.Expression]()
	blockType = reflect.TypeFor[hcl2.Block]()
)

func blockFieldOf(f reflect.StructField, i []int, options string) blockField {
	b := blockField{index: i, elem: f.Type}
	b.optional, b.repeat = strings.Contains(options, "optional"), strings.Contains(options, "repeat")
	if b.elem.Kind() == reflect.Slice {
		b.slice, b.elem = true, b.elem.Elem()
	}
	if b.elem.Kind() == reflect.Pointer {
		b.pointer, b.elem = true, b.elem.Elem()
	}
	switch {
	case b.elem == bodyType, b.elem == blockType:
		b.optional = true
	case b.elem.Kind() == reflect.Struct:
		b.labels = specLabels(b.elem)
	default:
		panic(fmt.Sprintf("hcl: field %s cannot hold a block", f.Name))
	}
	return b
}

// specLabels reads only the labels, so that a struct may contain itself.
func specLabels(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if name, ok := strings.CutSuffix(f.Tag.Get("hcl"), ",label"); ok {
			out = append(out, name)
		}
	}
	return out
}
