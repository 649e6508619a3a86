package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// Input is a file of another system.
type Input struct {
	Name string // with its path
	Text []byte
}

// Result is what files become.
type Result struct {
	// Agent and Aggregator are the configurations of these daemons, in HCL; "" where the
	// files say nothing for it.
	Agent, Aggregator string
	// Changes are what has another meaning than before.
	Changes []Change
	// Problems are files that are not converted, and statements and settings of the others
	// that are not understood.
	Problems []Problem
}

// Problem is what the result leaves out of a file.
type Problem struct {
	File    string // as its Input names it
	Line    int    // 0: unknown, or the file as a whole
	Message string
}

// String has the file and the line in front.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s: line %d: %s", p.File, p.Line, p.Message)
	}
	return p.File + ": " + p.Message
}

// Change is a setting, or a behavior, that has another meaning than before.
type Change struct{ File, Setting, Before, Now string }

// placed is an error about a line of a file.
type placed struct{ Problem }

// Error is the problem with its place.
func (p placed) Error() string { return p.String() }

// problemOf is the problem of a file that is not converted.
func problemOf(name string, err error) Problem {
	if p, ok := errors.AsType[placed](err); ok {
		return p.Problem
	}
	return Problem{File: name, Message: err.Error()}
}

// kind is a sort of file.
type kind struct {
	name    string
	is      func(in *Input, t tree) bool
	convert func(c *conversion, in *Input, t tree) error
	// folder is a part of the name of the folder in which AUDITOR's program has a file base;
	// "" where it has none.
	folder string
}

// file is a file of a kind.
type file struct {
	in   *Input
	tree tree
	kind *kind // nil: the file base of a client of AUDITOR, which does not say of which
}

// kindServer is the kind of which all files are one configuration.
const kindServer = "AUDITOR's server"

// inputKinds in the order in which a file is compared with them.
func inputKinds() []kind {
	return []kind{
		{"ClusterAccountant's tables", hasNameEnding(".sql"), (*conversion).convertTables, ""},
		{"access.conf", accessFile, (*conversion).takeAccess, ""},
		{"ai4-accounting's conf.py or environment", nomadFile, (*conversion).convertNomad, ""},
		{"ai4-accounting's user-db.json", hasNameEnding("user-db.json"), (*conversion).takePeople, ""},
		{"AUDITOR's APEL plugin", hasAnyKey("summary_fields"), (*conversion).convertApel, ""},
		{"AUDITOR's utilization plugin", hasAnyKey("utilization"), (*conversion).convertUtilization, ""},
		{"AUDITOR's priority plugin", priorityFile, (*conversion).convertPriority, "priority"},
		{"AUDITOR's HTCondor collector", hasAnyKey("schedd_names", "state_db"), (*conversion).convertHTCondor, ""},
		{"AUDITOR's Kubernetes collector", hasAnyKey("prometheus_addr", "auditor_addr"), (*conversion).convertKubernetes, ""},
		{"AUDITOR's Slurm epilog collector", epilogFile, (*conversion).convertEpilog, "epilog"},
		{"AUDITOR's Slurm collector", slurmFile, (*conversion).convertSlurm, "slurm"},
		{kindServer, isServerFile, (*conversion).convertServer, ""},
	}
}

// hasNameEnding says whether a file's name ends so.
func hasNameEnding(end string) func(*Input, tree) bool {
	return func(in *Input, _ tree) bool { return strings.HasSuffix(in.Name, end) }
}

// hasAnyKey says whether one of the settings is there.
func hasAnyKey(keys ...string) func(*Input, tree) bool {
	return func(_ *Input, t tree) bool { return slices.ContainsFunc(keys, t.hasKey) }
}

// conversion is what all files together become.
type conversion struct {
	now      time.Time
	name     string // of the file that is being converted, with its path
	file     string // without
	sources  body   // of the agent
	blocks   body   // of the aggregator, behind its own
	inside   body   // of the block aggregator
	changes  []Change
	problems []Problem
	accessed []string       // groups of access.conf
	claimed  []string       // groups of ClusterAccountant's projects
	nomad    []nomadSetting // of the source nomad
	servers  []file         // of AUDITOR's server
}

// Files converts files together. What cannot be converted is a problem of the result, which
// has the rest. Now is when they are; a report that begins with the next month is one of it.
func Files(now time.Time, inputs ...Input) (*Result, error) {
	c := &conversion{now: now}
	files := c.recognizeFiles(inputs)
	for _, f := range files {
		switch {
		case f.kind.name == kindServer:
			c.servers = append(c.servers, f)
		case f.kind.folder == "":
			c.convertLayers([]file{f})
		case layer(f.in.Name) > 0 || !slices.ContainsFunc(files, func(other file) bool { return other.kind == f.kind && layer(other.in.Name) > 0 }):
			c.convertLayers(append(c.basesOf(files, f), f))
		}
	}
	c.convertServers()
	c.nomadSource()
	c.compareGroups()
	out := &Result{Changes: c.changes, Problems: c.problems}
	var err error
	if c.sources.Len() > 0 {
		out.Agent, err = layOut("agent.hcl", agentHead+c.sources.String())
	}
	if c.blocks.Len()+c.inside.Len() > 0 && err == nil {
		out.Aggregator, err = layOut("aggregator.hcl", fmt.Sprintf(aggregatorHead, c.inside.String())+c.blocks.String())
	}
	return out, err
}

const agentHead = `agent {
  name     = "head1" # as in its certificate
  data_dir = "/var/lib/bursar-agent"

  # Aggregators pull by mutual TLS. On the machine of the authority:
  #   bursar tls cert create -role agent -name head1 -host head1.example.org
  # tls {
  #   ca   = "/etc/bursar/tls/ca.pem"
  #   cert = "/etc/bursar/tls/head1.pem"
  #   key  = "/etc/bursar/tls/head1.key"
  # }
}
`

const aggregatorHead = `aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
%s}
`

// recognizeFiles finds out what files are; of others it notes the problem.
func (c *conversion) recognizeFiles(inputs []Input) (files []file) {
	kinds := inputKinds()
	for i := range inputs {
		f, err := recognizeFile(&inputs[i], kinds)
		if err != nil {
			c.problems = append(c.problems, problemOf(inputs[i].Name, err))
			continue
		}
		files = append(files, f)
	}
	var clients []*kind // that have a file base
	for _, f := range files {
		if f.kind != nil && f.kind.folder != "" && !slices.Contains(clients, f.kind) {
			clients = append(clients, f.kind)
		}
	}
	known := files[:0]
	for _, f := range files {
		switch {
		case f.kind == nil && len(clients) == 1:
			f.kind = clients[0]
		case f.kind == nil:
			c.problems = append(c.problems, Problem{File: f.in.Name, Message: "the file does not say of which program it is: give it with the file of that program alone"})
			continue
		}
		known = append(known, f)
	}
	return known
}

// recognizeFile parses a file and finds out what it is.
func recognizeFile(in *Input, kinds []kind) (file, error) {
	f := file{in: in}
	var err error
	if f.tree, err = parseInput(in); err != nil {
		return f, err
	}
	base := !f.tree.isEmpty() && layer(in.Name) == 0
	var names []string
	for i := range kinds {
		k := &kinds[i]
		if base && k.folder != "" && strings.Contains(filepath.Base(filepath.Dir(in.Name)), k.folder) {
			f.kind = k
			return f, nil
		}
		names = append(names, k.name)
	}
	for i := range kinds {
		k := &kinds[i]
		switch {
		case k.name == kindServer && base && f.tree.hasKey("addr"): // which the server has in application
			return f, nil
		case k.is(in, f.tree):
			f.kind = k
			return f, nil
		}
	}
	if f.tree.isEmpty() {
		return f, errors.New("it sets nothing: all of its lines are comments")
	}
	return f, fmt.Errorf("unknown configuration; known are those of %s", strings.Join(names, ", "))
}

// basesOf are the files base that AUDITOR reads before a file: none or one.
func (c *conversion) basesOf(files []file, of file) (bases []file) {
	for _, f := range files {
		switch {
		case f.kind != of.kind || layer(f.in.Name) > 0 || f.in == of.in:
		case len(bases) > 0:
			c.noteProblem(Problem{File: f.in.Name, Message: bases[0].in.Name + " is the file base of " + f.kind.name + ": convert this one and its files apart"})
		default:
			bases = append(bases, f)
		}
	}
	return bases
}

// convertLayers converts files of a kind as one configuration, of which the settings of later
// ones win.
func (c *conversion) convertLayers(files []file) {
	var names, bases []string
	var whole tree
	for i, f := range files {
		if names, bases = append(names, f.in.Name), append(bases, filepath.Base(f.in.Name)); i == 0 {
			whole = f.tree
		} else {
			whole = f.tree.over(whole)
		}
	}
	part := &conversion{now: c.now, name: strings.Join(names, ", "), file: strings.Join(bases, ", ")}
	last := files[len(files)-1]
	if err := last.kind.convert(part, last.in, whole); err != nil {
		c.problems = append(c.problems, problemOf(part.name, err))
		return
	}
	for _, b := range []*body{&part.inside, &part.sources, &part.blocks} {
		if text := b.String(); len(files) > 1 && text != "" {
			b.Reset()
			b.WriteString("\n")
			b.writeComment("Of %s: what is in a later one wins.", part.file)
			b.WriteString(strings.TrimPrefix(text, "\n"))
			break
		}
	}
	c.joinPart(part)
}

// joinPart adds what a file became.
func (c *conversion) joinPart(part *conversion) {
	for _, b := range []struct{ to, from *body }{{&c.sources, &part.sources}, {&c.blocks, &part.blocks}, {&c.inside, &part.inside}} {
		b.to.WriteString(b.from.String())
		for _, head := range b.from.labelled {
			if slices.Contains(b.to.labelled, head) {
				c.noteProblem(Problem{File: part.name, Message: head + " is there from another file: leave out one of both, or give it another label"})
			}
		}
		b.to.labelled = append(b.to.labelled, b.from.labelled...)
	}
	for _, change := range part.changes {
		c.noteChange(change)
	}
	for _, s := range part.nomad {
		c.addNomad(s)
	}
	c.servers = append(c.servers, part.servers...)
	for _, p := range part.problems { // of a file base for each that lies over it
		c.noteProblem(p)
	}
	c.accessed = append(c.accessed, part.accessed...)
	c.claimed = append(c.claimed, part.claimed...)
}

// noteProblem notes a problem once.
func (c *conversion) noteProblem(p Problem) {
	if !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

// noteMissed notes a statement or a setting that is not understood.
func (c *conversion) noteMissed(line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{c.name, line, fmt.Sprintf(format, args...)})
}

// noteChanged notes another meaning.
func (c *conversion) noteChanged(setting, before, now string) {
	c.noteChange(Change{c.file, setting, before, now})
}

func (c *conversion) noteChange(change Change) {
	if !slices.Contains(c.changes, change) {
		c.changes = append(c.changes, change)
	}
}

// lay formats what was written.
func layOut(name, text string) (string, error) {
	out, diags := hcl.FormatFile(name, []byte(text))
	if diags.HasErrors() {
		return "", fmt.Errorf("%s: %w", name, diags.Err())
	}
	return string(out), nil
}

// secondsExpression writes a number of seconds as a duration; "" for none.
func secondsExpression(t tree) string {
	n, ok := t.numberValue()
	if !ok {
		return ""
	}
	return durationExpression(time.Duration(n * float64(time.Second)))
}

// durationExpression writes a duration in its largest unit that divides it.
func durationExpression(d time.Duration) string {
	for _, u := range []struct {
		name string
		long time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if d > 0 && d%u.long == 0 {
			return fmt.Sprintf("%d%s", d/u.long, u.name)
		}
	}
	return cmp.Or(strings.TrimSuffix(d.String(), "m0s"), d.String())
}
