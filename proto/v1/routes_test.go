package v1_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Each route of the description has a method.
func TestRoutes_OpenAPI_AreItsOperations(t *testing.T) {
	compare(t, "routes.go", newGenerator(t).routes())
}

// route is an operation of the description.
type route struct {
	name, method, path, summary string

	arguments []string // of the path: name and type
	address   string   // the expression that makes the path
	query     string   // the type of the query; "": it takes none
	body      string   // the type of a body in JSON; "": there is none
	file      string   // the media type of another body; "": there is none
	answer    string   // the type of an answer in JSON; "": there is none
	others    []string // other media types of the answer
	line      string   // the type of a line of NDJSON; "": there are none
}

// routes are the methods, and the types of their queries.
func (g *generator) routes() []byte {
	g.out.WriteString(generated + "import (\n\"context\"\n\"encoding/json\"\n\"io\"\n\"iter\"\n)\n")
	each(get(g.root, "paths"), func(path string, item *yaml.Node) {
		if !strings.HasPrefix(path, "/v1/") {
			return
		}
		each(item, func(method string, op *yaml.Node) {
			if method != "parameters" {
				r := g.route(path, method, item, op)
				g.methods(&r)
			}
		})
	})
	return []byte(g.out.String())
}

func (g *generator) route(path, method string, item, op *yaml.Node) route {
	r := route{name: exported(text(op, "operationId")), method: strings.ToUpper(method), path: path, summary: text(op, "summary")}
	r.address = strconv.Quote(path)
	var query []*yaml.Node
	for _, list := range []*yaml.Node{get(item, "parameters"), get(op, "parameters")} {
		for _, p := range items(list) {
			p = g.resolve(p)
			name := text(p, "name")
			switch text(p, "in") {
			case "path":
				if name == "type" {
					name = "typ"
				}
				r.arguments = append(r.arguments, name+" "+g.of("", get(p, "schema"), true))
				r.address = strings.Replace(r.address, "{"+text(p, "name")+"}", `" + pathPart(`+name+`) + "`, 1)
			case "query":
				if name != "format" && name != "download" { // the method says so
					query = append(query, p)
				}
			}
		}
	}
	r.address = strings.TrimSuffix(r.address, ` + ""`)
	g.body(&r, g.resolve(get(op, "requestBody")), text(get(op, "requestBody"), "$ref"))
	g.answer(&r, op)
	if len(query) > 0 {
		r.query = g.query(&r, query)
	}
	return r
}

func (g *generator) body(r *route, body *yaml.Node, ref string) {
	each(get(body, "content"), func(media string, content *yaml.Node) {
		if media != "application/json" {
			r.file = media
			return
		}
		r.body = g.of(ref[strings.LastIndexByte(ref, '/')+1:], get(content, "schema"), true)
		if title := text(get(content, "schema"), "title"); title != "" {
			r.body = title
		}
	})
}

func (g *generator) answer(r *route, op *yaml.Node) {
	each(get(op, "responses"), func(status string, answer *yaml.Node) {
		if status[0] != '2' {
			return
		}
		each(get(answer, "content"), func(media string, content *yaml.Node) {
			switch media {
			case "application/json":
				if r.answer = text(get(content, "schema"), "title"); r.answer == "" {
					r.answer = g.of("", get(content, "schema"), true)
				}
				return
			case "application/x-ndjson":
				r.line = base(get(content, "x-line"))
			}
			r.others = append(r.others, media)
		})
	})
}

// query writes the type of a query, which all have that can be asked for a stale answer only.
func (g *generator) query(r *route, parameters []*yaml.Node) string {
	name := r.name + "Query"
	var fields strings.Builder
	reading := 0
	for _, p := range parameters {
		field := text(p, "name")
		if field == "consistency" || field == "max_age" {
			reading++
			continue
		}
		if about := text(p, "description"); about != "" {
			fields.WriteString(wrapped(about))
		}
		fmt.Fprintf(&fields, "%s %s `query:%q%s`\n", exported(field), g.parameter(p), field, g.limits(p, get(p, "schema")))
		if plain := text(p, "x-plain"); plain != "" { // it may also stand there without brackets, as a list
			fmt.Fprintf(&fields, "%s string `query:%q list:\"true\"`\n", exported(plain), field)
		}
	}
	switch {
	case reading == len(parameters):
		return "Reading"
	case reading > 0:
		fields.WriteString("Reading\n")
	}
	fmt.Fprintf(&g.out, "\n// %s is the query of %s %s.\ntype %s struct {\n%s}\n", name, r.method, r.path, name, fields.String())
	return name
}

// parameter is the type of a field of a query.
func (g *generator) parameter(p *yaml.Node) string {
	s := get(p, "schema")
	switch {
	case text(s, "$ref") != "":
		return base(s)
	case text(s, "title") != "":
		return text(s, "title")
	case get(s, "x-values") != nil: // a list may also stand there without [0]
		return "map[string]" + base(get(s, "x-values"))
	case text(s, "type") == "object" && get(s, "additionalProperties") != nil:
		return "map[string]" + base(get(s, "additionalProperties"))
	case text(s, "type") == "object":
		return "map[string]string"
	case text(s, "type") == "boolean" && get(s, "default") == nil:
		return "*bool"
	case text(s, "minimum") == "0" && get(s, "default") == nil: // 0 is a number, too
		return "*" + g.of("", s, true)
	}
	return g.of("", s, true)
}

// limits are the tags that say which values a parameter, or a field of one, may have.
func (g *generator) limits(p, s *yaml.Node) (tags string) {
	if s = g.resolve(s); get(p, "x-list") != nil {
		tags += ` list:"true"`
	}
	var words []string
	for _, word := range items(get(s, "enum")) {
		words = append(words, word.Value)
	}
	for _, t := range []struct{ name, value string }{{"enum", strings.Join(words, ",")}, {"min", text(s, "minimum")}, {"max", text(s, "maximum")}} {
		if t.value != "" && t.value != "0" {
			tags += fmt.Sprintf(" %s:%q", t.name, t.value)
		}
	}
	return tags
}

// methods writes those of a route.
func (g *generator) methods(r *route) {
	in, query := "", "nil"
	for _, a := range r.arguments {
		in += ", " + a
	}
	if r.query != "" {
		in, query = in+", q *"+r.query, "queryValues(q)"
	}
	if r.answer != "" || len(r.others) == 0 {
		g.typed(r, in, query)
	}
	if r.method == "GET" && r.answer != "" {
		g.link(r, in, query)
	}
	if r.line != "" {
		g.routeComment(r.name+"Lines", r, ", line by line")
		fmt.Fprintf(&g.out, "func (a API) %sLines(ctx context.Context%s) iter.Seq2[%s, error] {\nreturn decodeLines[%s](a.Caller.Stream(ctx, %s, %s))\n}\n", r.name, in, r.line, r.line, r.address, query)
	}
	if len(r.others) == 0 {
		return
	}
	name, accept := r.name+"As", "accept"
	if in += ", accept string"; r.answer == "" {
		name, accept, in = r.name, strconv.Quote(r.others[0]), strings.TrimSuffix(in, ", accept string")
	}
	g.routeComment(name, r, ", written to w: "+strings.Join(r.others, ", "))
	fmt.Fprintf(&g.out, "func (f Files) %s(ctx context.Context%s, w io.Writer) error {\nreturn f.Carrier.Download(ctx, %s, %s, %s, w)\n}\n", name, in, r.address, query, accept)
}

// link writes the function that makes a link to a route.
func (g *generator) link(r *route, in, query string) {
	fmt.Fprintf(&g.out, "\n// %sAddress is a link to GET %s. The format \"\" is JSON.\nfunc %sAddress(%s) string { return addressOf(%s, %s, format) }\n",
		r.name, r.path, r.name, strings.TrimPrefix(in+", format string", ", "), r.address, query)
}

// typed writes the method whose answer is a type, or nothing.
func (g *generator) typed(r *route, in, query string) {
	receiver, call := "a API", fmt.Sprintf("a.Caller.Call(ctx, %q, %s, %s, ", r.method, r.address, query)
	switch {
	case r.file != "":
		in += ", body io.Reader"
		receiver, call = "f Files", fmt.Sprintf("f.Carrier.Upload(ctx, %q, %s, %s, %q, body, ", r.method, r.address, query, r.file)
	case r.body == "":
		call += "nil, "
	default:
		in, call = in+", body "+r.body, call+"body, "
	}
	g.routeComment(r.name, r, "")
	if r.answer == "" {
		fmt.Fprintf(&g.out, "func (%s) %s(ctx context.Context%s) error {\nreturn %snil)\n}\n", receiver, r.name, in, call)
		return
	}
	fmt.Fprintf(&g.out, "func (%s) %s(ctx context.Context%s) (out %s, err error) {\nerr = %s&out)\nreturn out, err\n}\n", receiver, r.name, in, r.answer, call)
}

func (g *generator) routeComment(name string, r *route, more string) {
	g.out.WriteString("\n" + wrapped(fmt.Sprintf("%s is %s %s: %s%s.", name, r.method, r.path, r.summary, more)))
}

// resolve follows a reference into the components of the description.
func (g *generator) resolve(n *yaml.Node) *yaml.Node {
	if ref := text(n, "$ref"); ref != "" {
		return get(g.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

func items(list *yaml.Node) []*yaml.Node {
	if list == nil {
		return nil
	}
	return list.Content
}
