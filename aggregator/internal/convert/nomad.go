package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A line of a shell script or of an environment file, and statements of conf.py; and those
// that set nothing.
var (
	variable  = regexp.MustCompile(`(?m)^\s*(?:export\s+)?(NOMAD_[A-Z_]+)=["']?([^"'\s#]*)`)
	removed   = regexp.MustCompile(`(?m)^\s*NAMESPACES\.remove\(["']([^"']+)["']\)`)
	namespace = regexp.MustCompile(`(?m)^\s*NAMESPACES\s*=\s*\[((?:\s*["'][^"']+["']\s*,?)+)\]`)
	quoted    = regexp.MustCompile(`["']([^"']+)["']`)
	idle      = regexp.MustCompile(`(?m)^\s*(?:(?:import|from)\s.*|Nomad\s*=\s*nomad\.Nomad\(\)|NAMESPACES\s*=.*\.get_namespaces\(\)\s*\])\s*$`)
	// setting is what a line has that may set something, unlike a command.
	setting = regexp.MustCompile(`=|NOMAD_|NAMESPACES|^(?:if|elif|else|for|while|case|def|try|source|\.)\b|^\. `)
)

func nomadFile(in *Input, t tree) bool {
	return t.node == nil && (variable.Match(in.Text) || removed.Match(in.Text) || namespace.Match(in.Text))
}

// convertNomad takes what ai4-accounting's conf.py and the environment of its snapshots say; the
// source is written when all files are read.
func (c *conversion) convertNomad(in *Input, _ tree) error {
	attrs := map[string]string{
		"NOMAD_ADDR": "address", "NOMAD_CACERT": "ca", "NOMAD_CLIENT_CERT": "cert", "NOMAD_CLIENT_KEY": "key",
		"NOMAD_TLS_SERVER_NAME": "tls_server_name", "NOMAD_REGION": "region",
	}
	text := string(in.Text)
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		switch name := attrs[m[1]]; {
		case name != "":
			c.setNomad(name, quoteText(m[2]))
			if strings.ContainsAny(m[2], "$`") {
				c.noteMissed(lineOf(text, strings.Index(text, m[0])+len(m[0])), "%s is made of variables: write its value as %s", m[1], name)
			}
		case m[1] == "NOMAD_TOKEN":
			c.setNomad("token_file", quoteText("/etc/bursar/nomad.token"))
		default:
			c.setNomad("# "+m[1], "has no equal")
		}
	}
	var without []string
	for _, m := range removed.FindAllStringSubmatch(text, -1) {
		without = append(without, m[1])
	}
	if len(without) > 0 {
		c.setNomad("exclude_namespaces", listExpression(sortedTexts(without)))
	}
	if m := namespace.FindStringSubmatch(text); m != nil {
		var only []string
		for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
			only = append(only, q[1])
		}
		c.setNomad("namespaces", listExpression(sortedTexts(only)))
	}
	var known [][]int
	for _, re := range []*regexp.Regexp{variable, removed, namespace, idle} {
		known = append(known, re.FindAllStringIndex(text, -1)...)
	}
	eachBeside(text, known, func(line int, statement string) {
		if setting.MatchString(statement) {
			c.noteMisunderstood(line, statement)
		}
	})
	c.noteChanged("snapshots", "what is running every few hours", "each run, from the event stream and a listing each minute")
	c.noteChanged("GPUs, memory and disk", "of the task main", "the same, by the condition of the record block; without it of all tasks")
	c.noteChanged("cpu_num of a job without reserved cores", "its MHz are counted as cores", "Cores and MHz are two components")
	return nil
}

// nomadSetting is a setting of the source nomad, or a comment; and the file that has it.
type nomadSetting struct{ name, expression, file string }

// setNomad takes a setting. It takes the place of the same setting before it, as in a
// shell; that it does so between files is noted.
func (c *conversion) setNomad(name, expression string) {
	c.addNomad(nomadSetting{name, expression, c.name})
}

func (c *conversion) addNomad(s nomadSetting) {
	i := slices.IndexFunc(c.nomad, func(o nomadSetting) bool { return o.name == s.name })
	if i < 0 {
		c.nomad = append(c.nomad, s)
		return
	}
	if old := c.nomad[i]; old.file != s.file && old.expression != s.expression {
		c.problems = append(c.problems, Problem{File: s.file, Message: fmt.Sprintf("%s is another one in %s: this one is taken", s.name, old.file)})
	}
	c.nomad[i] = s
}

// nomadSource writes the source of what conf.py and the environment say.
func (c *conversion) nomadSource() {
	if len(c.nomad) == 0 {
		return
	}
	b := &c.sources
	b.openBlock("source", "nomad", "ai4eosc")
	b.openBlock("config")
	for _, s := range c.nomad {
		switch {
		case strings.HasPrefix(s.name, "# "):
			b.writeComment("%s: %s", strings.TrimPrefix(s.name, "# "), s.expression)
		case s.name == "token_file":
			b.writeComment("NOMAD_TOKEN: put it into a file that only bursar-agent can read")
			fallthrough
		default:
			b.writeAttribute(s.name, s.expression)
		}
	}
	b.writeComment("ai4-accounting skips all other jobs.")
	b.writeTexts("jobs", []string{"module*", "tool*", "batch*"})
	b.closeBlock()
	b.openBlock("record")
	b.writeComment("ai4-accounting knows the task main alone.")
	b.writeAttribute("when", `job.task == "main"`)
	b.closeBlock()
	b.closeBlock()
	c.blocks.WriteString("\n")
	c.blocks.writeComment("Its snapshots: bursar import ai4 -label ai4eosc /srv/ai4-accounting/snapshots")
}

// takePeople takes names and addresses of ai4-accounting's users.
func (c *conversion) takePeople(in *Input, _ tree) error {
	var users map[string]struct{ Name, Email string }
	if err := json.Unmarshal(in.Text, &users); err != nil {
		at := int64(0)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		} else if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = typ.Offset
		}
		return fmt.Errorf("line %d: %w", lineOf(string(in.Text), int(at)), err)
	}
	ids := make([]string, 0, len(users))
	for id := range users {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.takePerson(id, users[id].Name, users[id].Email)
	}
	return nil
}

func (c *conversion) takePerson(id, name, email string) {
	c.blocks.openBlock("person", id)
	c.blocks.writeText("name", strings.TrimSpace(name))
	c.blocks.writeText("email", email)
	c.blocks.closeBlock()
}
