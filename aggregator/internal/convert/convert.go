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

// kind is a sort of file.
type kind struct {
	name    string
	is      func(in *Input, t tree) bool
	convert func(c *conversion, in *Input, t tree) error
}

// inputKinds in the order in which a file is compared with them.
func inputKinds() []kind {
	return []kind{
		{"ClusterAccountant's tables", hasNameEnding(".sql"), (*conversion).convertTables},
		{"access.conf", accessFile, (*conversion).takeAccess},
		{"ai4-accounting's conf.py or environment", nomadFile, (*conversion).convertNomad},
		{"ai4-accounting's user-db.json", hasNameEnding("user-db.json"), (*conversion).takePeople},
		{"AUDITOR's APEL plugin", hasAnyKey("summary_fields"), (*conversion).convertApel},
		{"AUDITOR's utilization plugin", hasAnyKey("utilization"), (*conversion).convertUtilization},
		{"AUDITOR's priority plugin", hasAnyKey("group_mapping"), (*conversion).convertPriority},
		{"AUDITOR's HTCondor collector", hasAnyKey("schedd_names", "state_db"), (*conversion).convertHTCondor},
		{"AUDITOR's Kubernetes collector", hasAnyKey("prometheus_addr", "auditor_addr"), (*conversion).convertKubernetes},
		{"AUDITOR's Slurm epilog collector", epilogFile, (*conversion).convertEpilog},
		{"AUDITOR's Slurm collector", slurmFile, (*conversion).convertSlurm},
		{"AUDITOR's server", isServerFile, (*conversion).takeServer},
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
	servers  []serverFile   // of AUDITOR's server
}

// Files converts files together. What cannot be converted is a problem of the result, which
// has the rest. Now is when they are; a report that begins with the next month is one of it.
func Files(now time.Time, inputs ...Input) (*Result, error) {
	c := &conversion{now: now}
	for i := range inputs {
		part := &conversion{now: now, name: inputs[i].Name}
		if err := part.convertFile(&inputs[i]); err != nil {
			c.problems = append(c.problems, Problem{File: inputs[i].Name, Message: err.Error()})
			continue
		}
		c.joinPart(part)
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

// convertFile converts a file.
func (c *conversion) convertFile(in *Input) error {
	c.file = filepath.Base(in.Name)
	t, err := parseInput(in)
	if err != nil {
		return err
	}
	var names []string
	for _, k := range inputKinds() {
		if k.is(in, t) {
			return k.convert(c, in, t)
		}
		names = append(names, k.name)
	}
	if t.isEmpty() {
		return errors.New("it sets nothing: all of its lines are comments")
	}
	return fmt.Errorf("unknown configuration; known are those of %s", strings.Join(names, ", "))
}

// joinPart adds what a file became.
func (c *conversion) joinPart(part *conversion) {
	for _, b := range []struct{ to, from *body }{{&c.sources, &part.sources}, {&c.blocks, &part.blocks}, {&c.inside, &part.inside}} {
		b.to.WriteString(b.from.String())
	}
	for _, change := range part.changes {
		c.noteChange(change)
	}
	for _, s := range part.nomad {
		c.addNomad(s)
	}
	c.servers = append(c.servers, part.servers...)
	c.problems = append(c.problems, part.problems...)
	c.accessed = append(c.accessed, part.accessed...)
	c.claimed = append(c.claimed, part.claimed...)
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
