package hcl

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Validator is implemented, on the pointer, by structs of blocks that check
// themselves. It is called once a block has been decoded without an error; its
// diagnostics join the others.
type Validator interface {
	ValidateHCL() Diagnostics
}

// Decode reads the body of a loaded file into the struct that target points
// to, by the tags that the package documentation lists, and returns all
// problems of all blocks. What is optional and absent keeps the value that
// target had. A nil ctx allows constants only. After errors the target holds
// what could be read. Of a file that is Broken that is all: Load has reported why, and
// what else seems to be wrong may follow from it.
func Decode(file *File, target any, ctx *EvalContext) Diagnostics {
	at := file.Body.MissingItemRange()
	if len(file.Paths) > 0 {
		at = Range{Filename: file.Paths[0], Start: hcl2.InitialPos, End: hcl2.InitialPos}
	}
	d := decoder{ctx: ctx}
	diags := d.decodeBody(file.Body, at, structOf(target))
	if file.Broken {
		return nil
	}
	return diags
}

// DecodeBody is Decode of a body that an earlier Decode left undecoded.
func DecodeBody(body Body, target any, ctx *EvalContext) Diagnostics {
	if body == nil {
		body = new(hclsyntax.Body)
	}
	d := decoder{ctx: ctx}
	return d.decodeBody(body, body.MissingItemRange(), structOf(target))
}

func structOf(target any) reflect.Value {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("hcl: the target is %T, not a pointer to a struct", target))
	}
	return v.Elem()
}

// decoder walks bodies and target structs side by side.
type decoder struct{ ctx *EvalContext }

// decodeBody decodes b into the struct target; what is missing is reported at at.
func (d *decoder) decodeBody(b *hclsyntax.Body, at Range, target reflect.Value) Diagnostics {
	s := specOf(target.Type())
	rest := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: b.SrcRange, EndRange: b.EndRange}
	setDefaults(target)
	diags := d.decodeAttributes(s, b, rest, target)
	diags.Extend(d.reportMissing(s, b, at))
	diags.Extend(d.decodeBlocks(s, b, rest, at, target))
	diags.Extend(d.passRemaining(s, rest, target))
	if v, ok := reflect.TypeAssert[Validator](target.Addr()); ok && !diags.HasErrors() {
		diags.Extend(v.ValidateHCL())
	}
	return diags
}

// passRemaining hands what no field took to the remain field, or reports it.
func (d *decoder) passRemaining(s *spec, rest *hclsyntax.Body, target reflect.Value) Diagnostics {
	if s.remain == nil {
		return reportUnknown(s, rest)
	}
	target.FieldByIndex(s.remain).Set(reflect.ValueOf(rest))
	return nil
}

func (d *decoder) decodeAttributes(s *spec, b, rest *hclsyntax.Body, target reflect.Value) Diagnostics {
	var diags Diagnostics
	for _, a := range inOrder(b.Attributes) {
		f, ok := s.attrs[a.Name]
		if !ok {
			rest.Attributes[a.Name] = a
			continue
		}
		setRange(target, s.attrAt[a.Name], a.SrcRange)
		written, more := d.decodeAttribute(a, f, target.FieldByIndex(f.index))
		if diags.Extend(more); written {
			s.setPlace(target, a.Name, a.Expr.Range())
		}
	}
	return diags
}

// setRange notes a place in the field for it, if there is one.
func setRange(target reflect.Value, index []int, r Range) {
	if index != nil {
		target.FieldByIndex(index).Set(reflect.ValueOf(r))
	}
}

// decodeAttribute reports whether the attribute has a value, and what is wrong with it.
func (d *decoder) decodeAttribute(a *hclsyntax.Attribute, f attrField, field reflect.Value) (written bool, diags Diagnostics) {
	null := false
	v := valueDecoder{ctx: d.ctx, name: a.Name, optional: f.optional, null: &null}
	diags = v.decodeExpression(a.Expr, field)
	if written = !diags.HasErrors(); written {
		v.secret = mayHoldSecret(a.Expr, d.ctx)
		diags.Extend(v.reportFailure(cty.DynamicVal, a.Expr.Range(), f.checkLimits(field)))
	}
	return written && !null, diags
}

func (d *decoder) reportMissing(s *spec, b *hclsyntax.Body, at Range) Diagnostics {
	var diags Diagnostics
	for _, name := range s.attrNames {
		if _, ok := b.Attributes[name]; !ok && !s.attrs[name].optional {
			diags.Add(Errorf(at, "missing attribute", "%s must be set here", name))
		}
	}
	return diags
}

// reportUnknown reports attributes and blocks that nothing asked for.
func reportUnknown(s *spec, rest *hclsyntax.Body) Diagnostics {
	var diags Diagnostics
	for _, a := range inOrder(rest.Attributes) {
		detail := s.whereTo(a.Name, s.attrNames, "attributes")
		if slices.Contains(s.typeNames, a.Name) {
			detail = fmt.Sprintf("%s is a block here; did you mean %s { … }?", a.Name, a.Name)
		} else if t := Suggest(a.Name, s.typeNames); t != "" && Suggest(a.Name, s.attrNames) == "" {
			detail = fmt.Sprintf("did you mean the block %s { … }?", t)
		}
		diags.Add(Errorf(a.NameRange, fmt.Sprintf("unknown attribute %q", a.Name), "%s", detail))
	}
	for _, b := range rest.Blocks {
		detail := s.whereTo(b.Type, s.typeNames, "blocks")
		if slices.Contains(s.attrNames, b.Type) {
			detail = fmt.Sprintf("%s is an attribute here; did you mean %s = …?", b.Type, b.Type)
		}
		diags.Add(Errorf(b.TypeRange, fmt.Sprintf("unknown block %q", b.Type), "%s", detail))
	}
	return diags
}

// whereTo says what may be meant by a name that is unknown here: a name of a block in this
// one, a name like it, or a setting of a plugin, which belongs into its config block.
func (s *spec) whereTo(name string, candidates []string, kind string) string {
	near, inside := Suggest(name, candidates), ""
	for _, block := range s.typeNames {
		f := s.blocks[block]
		if f.elem == bodyType || len(f.labels) > 0 {
			continue
		}
		inner := specOf(f.elem)
		switch known := slices.Concat(inner.attrNames, inner.typeNames); {
		case slices.Contains(known, name):
			return fmt.Sprintf("move it into %s { }", block)
		case near == "" && inside == "" && Suggest(name, known) != "":
			inside = fmt.Sprintf("did you mean %s in %s { }?", Suggest(name, known), block)
		}
	}
	f, ok := s.blocks["config"]
	switch {
	case inside != "":
		return inside
	case near == "" && ok && f.elem == bodyType:
		return fmt.Sprintf("if %s is a setting of the plugin, move it into config { }", name)
	case len(candidates) == 0:
		return kind + " are not allowed here"
	}
	return DidYouMean(name, candidates)
}

// decodeBlocks decodes the blocks that fields ask for and moves the others to rest.
func (d *decoder) decodeBlocks(s *spec, b, rest *hclsyntax.Body, at Range, target reflect.Value) Diagnostics {
	var diags Diagnostics
	found := map[string][]*hclsyntax.Block{}
	for _, block := range b.Blocks {
		if _, ok := s.blocks[block.Type]; ok {
			found[block.Type] = append(found[block.Type], block)
		} else {
			rest.Blocks = append(rest.Blocks, block)
		}
	}
	for _, name := range s.typeNames {
		f := s.blocks[name]
		diags.Extend(reportDuplicates(f, found[name]))
		diags.Extend(d.blocksOf(name, f, found[name], at, target.FieldByIndex(f.index)))
	}
	return diags
}

// reportDuplicates reports blocks that may be there only once, by type or by labels.
func reportDuplicates(f blockField, blocks []*hclsyntax.Block) Diagnostics {
	var diags Diagnostics
	first := map[string]*hclsyntax.Block{}
	for _, b := range blocks {
		if f.repeat || f.slice && len(b.Labels) == 0 {
			continue
		}
		key := blockHeader(b)
		if !f.slice {
			key = b.Type
		}
		if old, ok := first[key]; ok {
			diags.Add(Errorf(b.DefRange(), "duplicate block", "%s is already defined at %s", key, placeOf(old.DefRange())))
			continue
		}
		first[key] = b
	}
	return diags
}

// blockHeader is how a block begins: source "slurm" "nemo".
func blockHeader(b *hclsyntax.Block) string {
	parts := []string{b.Type}
	for _, l := range b.Labels {
		parts = append(parts, fmt.Sprintf("%q", l))
	}
	return strings.Join(parts, " ")
}

func (d *decoder) blocksOf(name string, f blockField, blocks []*hclsyntax.Block, at Range, field reflect.Value) Diagnostics {
	var diags Diagnostics
	if len(blocks) == 0 && !f.slice && !f.pointer && !f.optional {
		diags.Add(Errorf(at, "missing block", "%s { … } must be written here", name))
	}
	if f.slice && len(blocks) > 0 {
		field.Set(reflect.MakeSlice(field.Type(), 0, len(blocks)))
	}
	for _, b := range blocks {
		elem := f.slotFor(field)
		wrong := checkLabels(b, f)
		diags.Extend(wrong)
		diags.Extend(d.decodeBlock(b, f, elem))
		if wrong.HasErrors() { // without its name it is none of them
			continue
		}
		f.putBlock(field, elem)
	}
	return diags
}

// slotFor is where a block goes: the field itself, what it points to, or a new
// element of the slice.
func (f *blockField) slotFor(field reflect.Value) reflect.Value {
	switch {
	case f.slice:
		return reflect.New(f.elem).Elem()
	case f.pointer:
		if field.IsNil() {
			field.Set(reflect.New(f.elem))
		}
		return field.Elem()
	}
	return field
}

// putBlock appends a block to the slice that holds those of its type.
func (f *blockField) putBlock(field, elem reflect.Value) {
	switch {
	case f.slice && f.pointer:
		field.Set(reflect.Append(field, elem.Addr()))
	case f.slice:
		field.Set(reflect.Append(field, elem))
	}
}

func (d *decoder) decodeBlock(b *hclsyntax.Block, f blockField, elem reflect.Value) Diagnostics {
	if f.elem == bodyType {
		elem.Set(reflect.ValueOf(b.Body))
		return nil
	}
	s := specOf(f.elem)
	var diags Diagnostics
	for i, text := range b.Labels {
		if i < len(s.labels) && text != "" {
			diags.Extend(s.setLabel(elem, i, text, b.LabelRanges[i]))
		}
	}
	s.setHeader(elem, b.DefRange())
	return append(diags, d.decodeBody(b.Body, b.DefRange(), elem)...)
}

// setLabel puts a label into its field.
func (s *spec) setLabel(target reflect.Value, i int, text string, r Range) Diagnostics {
	l := &s.labels[i]
	s.setPlace(target, l.name, r)
	field := target.FieldByIndex(l.index)
	if field.Type() == reflect.TypeFor[String]() {
		field.Set(reflect.ValueOf(String{Value: text, Range: r}))
	} else {
		field.SetString(text)
	}
	if err := l.checkLimits(field); err != nil {
		return Diagnostics{Errorf(r, "invalid "+l.name, "%v", err)}
	}
	return nil
}

// checkLabels reports labels that are missing, empty or too many.
func checkLabels(b *hclsyntax.Block, f blockField) Diagnostics {
	var diags Diagnostics
	if want := len(f.labels); len(b.Labels) != want {
		at := b.DefRange()
		if len(b.Labels) > want {
			at = b.LabelRanges[want]
		}
		diags.Add(Errorf(at, fmt.Sprintf("wrong number of labels on %q", b.Type), "expected %s", blockForm(b.Type, f.labels)))
	}
	for i, l := range b.Labels {
		if l == "" && i < len(f.labels) {
			diags.Add(Errorf(b.LabelRanges[i], "empty label", "the %s of %s cannot be empty", f.labels[i], b.Type))
		}
	}
	return diags
}

func blockForm(name string, labels []string) string {
	for _, l := range labels {
		name += fmt.Sprintf(" %q", "<"+l+">")
	}
	return name + " { … }"
}
