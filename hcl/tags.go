package hcl

import (
	"fmt"
	"maps"
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

// labelField is a struct field that a label fills.
type labelField struct {
	name  string
	index []int
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
	labels    []labelField
	attrAt    map[string][]int // fields for the places of attributes
	defAt     []int            // the field for the place of the block
	places    []int            // the field for all places
	remain    []int
	attrNames []string
	typeNames []string
}

// specOf reads the tags of a struct, those of structs that it embeds included. Wrong tags are a mistake of the program
// and panic.
func specOf(t reflect.Type) *spec {
	s := &spec{attrs: map[string]attrField{}, blocks: map[string]blockField{}, attrAt: map[string][]int{}}
	for _, f := range reflect.VisibleFields(t) {
		if tag := f.Tag.Get("hcl"); tag != "" {
			s.addField(t, f, tag)
		}
	}
	s.attrNames, s.typeNames = slices.Sorted(maps.Keys(s.attrs)), slices.Sorted(maps.Keys(s.blocks))
	return s
}

func (s *spec) addField(t reflect.Type, f reflect.StructField, tag string) {
	i := f.Index
	name, rest, _ := strings.Cut(tag, ",")
	kind, options, _ := strings.Cut(rest, ",")
	switch kind {
	case "":
		s.attrs[name] = attrField{index: i, optional: f.Type.Kind() == reflect.Pointer, limits: limitsOf(f)}
	case "optional":
		s.attrs[name] = attrField{index: i, optional: true, limits: limitsOf(f)}
	case "block":
		s.blocks[name] = blockFieldOf(f, i, options)
	case "label":
		s.labels = append(s.labels, labelField{name: name, index: i, limits: limitsOf(f)})
	case "remain":
		s.remain = i
	case "def_range":
		s.defAt = i
	case "places":
		s.places = i
	case "attr_range":
		s.attrAt[name] = i
	default:
		panic(fmt.Sprintf("hcl: field %s.%s has the unknown tag %q", t, f.Name, tag))
	}
}

var (
	bodyType = reflect.TypeFor[Body]()
	exprType = reflect.TypeFor[hcl2.Expression]()
)

func blockFieldOf(f reflect.StructField, i []int, options string) blockField {
	b := blockField{index: i, elem: f.Type}
	b.optional, b.repeat = strings.Contains(options, "optional"), strings.Contains(options, "repeat")
	if b.elem.Kind() == reflect.Slice {
		b.slice, b.elem = true, b.elem.Elem()
	}
	if b.elem.Kind() == reflect.Pointer && b.elem != bodyType {
		b.pointer, b.elem = true, b.elem.Elem()
	}
	switch {
	case b.elem == bodyType:
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
