package hcl

import "github.com/hashicorp/hcl/v2/hclsyntax"

// Header is the head of a block: its type and its labels.
type Header struct {
	Type   string
	Labels []string
}

// Headers returns those of the file's outermost blocks, in their order.
func (f *File) Headers() []Header {
	body, ok := f.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	var out []Header
	for _, b := range body.Blocks {
		out = append(out, Header{Type: b.Type, Labels: b.Labels})
	}
	return out
}
