package hcl

// Header is the head of a block: its type and its labels.
type Header struct {
	Type   string
	Labels []string
}

// Headers returns those of the file's outermost blocks, in their order.
func (f *File) Headers() []Header {
	var out []Header
	for _, b := range f.Body.Blocks {
		out = append(out, Header{Type: b.Type, Labels: b.Labels})
	}
	return out
}
