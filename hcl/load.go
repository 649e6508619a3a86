package hcl

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// maxFileSize is the largest configuration file that is read.
const maxFileSize = 4 << 20

// Sources are the bytes of the files that were read, by name as in Range.Filename.
type Sources map[string][]byte

// File is a loaded configuration: one file, or several merged into one body.
type File struct {
	// Body holds the attributes and blocks of all files, in their order.
	Body Body
	// Dir is the directory of the first path (or the path itself when it is a
	// directory). The function file() resolves relative names against it.
	Dir string
	// Paths are the files that were read, in order.
	Paths []string
	// Sources hold what was read, for Diagnostics.Write.
	Sources Sources
	// Broken is set when a file could not be read or parsed. Whatever else seems to be
	// wrong may follow from that, so nothing else is reported.
	Broken bool
}

// Context is a fresh evaluation context with Functions(f.Dir) and no variables;
// the caller owns it and may add to it.
func (f *File) Context() *EvalContext {
	return &EvalContext{Variables: nil, Functions: Functions(f.Dir)}
}

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

// Load reads configuration from files and directories. Of a directory the
// files *.hcl are read in lexical order, hidden ones left out. All files are
// merged: blocks follow each other, an attribute that is set twice is an error
// that names both places.
//
// The file is never nil, so a caller may decode it and report all problems at
// once. When one of the files could not be read or parsed, it is Broken and the
// problems are the reasons for that alone.
func Load(paths ...string) (*File, Diagnostics) {
	f := &File{Sources: Sources{}}
	var diags Diagnostics
	if len(paths) == 0 {
		diags.Add(Errorf(Range{}, "no configuration", "no file or directory was named"))
	}
	for i, p := range paths {
		names, dir, err := expandPath(p)
		if err != nil {
			diags.Add(Errorf(Range{}, "cannot read configuration", "%v", err))
			f.Broken = true
		}
		if i == 0 {
			f.Dir = dir
		}
		f.Paths = append(f.Paths, names...)
	}
	f.Paths = uniqueNames(f.Paths)
	bodies := make([]*hclsyntax.Body, 0, len(f.Paths))
	for _, name := range f.Paths {
		body, more := f.readBody(name)
		bodies = append(bodies, body)
		diags.Extend(more)
	}
	body, more := mergeBodies(bodies)
	f.Body = body
	if !f.Broken {
		diags.Extend(more)
	}
	return f, diags
}

// Parse is Load of one file that is in memory. The name is used in ranges, and
// its directory is File.Dir.
func Parse(name string, src []byte) (*File, Diagnostics) {
	f := &File{Sources: Sources{}, Dir: filepath.Dir(name), Paths: []string{name}}
	body, diags := f.parseBody(name, src)
	f.Body = body
	return f, diags
}

// expandPath gives the files that a path stands for and the directory they are in.
func expandPath(path string) (files []string, dir string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, filepath.Dir(path), FileError(err)
	}
	if !info.IsDir() {
		return []string{path}, filepath.Dir(path), nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, path, FileError(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".hcl") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, path, fmt.Errorf("folder %s has no *.hcl files", path)
	}
	return files, path, nil
}

func uniqueNames(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.ContainsFunc(out, func(o string) bool { return filepath.Clean(o) == filepath.Clean(n) }) {
			out = append(out, n)
		}
	}
	return out
}

func (f *File) readBody(name string) (*hclsyntax.Body, Diagnostics) {
	src, err := readFile(name, maxFileSize)
	if err != nil {
		f.Broken = true
		return &hclsyntax.Body{}, Diagnostics{Errorf(Range{}, "cannot read configuration", "%v", err)}
	}
	return f.parseBody(name, src)
}

// FileError words what an error says of a file for the person who named the file. Another
// error stays as it is.
func FileError(err error) error {
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	text := fmt.Sprintf("file %s cannot be used: %v", at.Path, at.Err)
	switch {
	case errors.Is(at, fs.ErrNotExist):
		text = fmt.Sprintf("file %s does not exist; is the path right?", at.Path)
		if folder := filepath.Dir(at.Path); isMissing(folder) {
			text = fmt.Sprintf("folder %s does not exist; is the path right?", folder)
		}
	case errors.Is(at, fs.ErrPermission):
		text = fmt.Sprintf("file %s cannot be used: permission denied; may user %d use it and enter its folder?", at.Path, os.Geteuid())
	}
	return fileError{err, strings.Replace(err.Error(), at.Error(), text, 1)}
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// fileError is an error in other words.
type fileError struct {
	error
	text string
}

func (e fileError) Error() string { return e.text }

func (e fileError) Unwrap() error { return e.error }

// readFile reads a regular file of at most limit bytes.
func readFile(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, FileError(err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a file", name)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; is the path right?", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, FileError(err)
	}
	defer file.Close()
	src, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(src)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return src, err
}

func (f *File) parseBody(name string, src []byte) (*hclsyntax.Body, Diagnostics) {
	f.Sources[name] = src
	body, diags := parseSource(name, src)
	if slices.ContainsFunc(diags, func(d *Diagnostic) bool { return d.Severity == hcl2.DiagError && d.Summary != redefined }) {
		f.Broken = true
		return body, diags
	}
	diags.Extend(badPatterns(body))
	return body, diags
}

// redefined is the one problem of the parser that leaves nothing out.
const redefined = "Attribute redefined"

func parseSource(name string, src []byte) (body *hclsyntax.Body, diags Diagnostics) {
	body = &hclsyntax.Body{}
	whole := Range{Filename: name, Start: hcl2.InitialPos, End: hcl2.InitialPos}
	defer func() {
		if p := recover(); p != nil {
			diags = Diagnostics{Errorf(whole, "cannot parse", "the parser gave up: %v", p)}
		}
	}()
	file, more := hclsyntax.ParseConfig(src, name, hcl2.InitialPos)
	diags.Extend(firstOfUnclosed(more))
	if file != nil {
		if b, ok := file.Body.(*hclsyntax.Body); ok && b != nil {
			body = b
		}
	}
	return body, diags
}

// firstOfUnclosed cuts the problems after a quote that is not closed: from there
// on the parser takes text for quotes and quotes for text.
func firstOfUnclosed(diags []*Diagnostic) []*Diagnostic {
	for i, d := range diags {
		if d.Summary == "Invalid multi-line string" || d.Summary == "Unterminated template string" {
			return diags[:i+1]
		}
	}
	return diags
}

// mergeBodies makes one body of many. The first of an attribute that is set twice wins.
func mergeBodies(bodies []*hclsyntax.Body) (*hclsyntax.Body, Diagnostics) {
	out := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	var diags Diagnostics
	for i, b := range bodies {
		if i == 0 {
			out.SrcRange, out.EndRange = b.SrcRange, b.EndRange
		}
		for _, a := range inOrder(b.Attributes) {
			if old, ok := out.Attributes[a.Name]; ok {
				diags.Add(setTwice("attribute", a.Name, a.NameRange, old.NameRange))
				continue
			}
			out.Attributes[a.Name] = a
		}
		out.Blocks = append(out.Blocks, b.Blocks...)
	}
	return out, diags
}

func setTwice(kind, name string, again, first Range) *Diagnostic {
	return Errorf(again, "duplicate "+kind, "%s is already set at %s", name, placeOf(first))
}

func inOrder(attrs hclsyntax.Attributes) []*hclsyntax.Attribute {
	out := make([]*hclsyntax.Attribute, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int { return inSource(a.NameRange, b.NameRange) })
	return out
}

// inSource orders places by file and position.
func inSource(a, b Range) int {
	return cmp.Or(strings.Compare(a.Filename, b.Filename), cmp.Compare(a.Start.Byte, b.Start.Byte))
}

// Format puts source into canonical layout: indentation and aligned equals
// signs. Source that does not parse comes back laid out as well as possible;
// FormatFile refuses it.
func Format(src []byte) []byte { return hclwrite.Format(src) }

// Quote writes a text as an expression for it: in quotes, with escapes for what HCL would
// read otherwise.
func Quote(s string) string { return string(hclwrite.TokensForValue(cty.StringVal(s)).Bytes()) }

// FormatFile is Format for source that must parse: with errors it returns the
// source unchanged and the problems.
func FormatFile(name string, src []byte) ([]byte, Diagnostics) {
	if _, diags := parseSource(name, src); diags.HasErrors() {
		return src, diags
	}
	return Format(src), nil
}
