package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// settings are those of the config block.
type settings struct {
	Components map[string]string `hcl:"components" doc:"by name, the score to weight it with; \"\" for none. Of several a record counts with the product"`
	Lookback   time.Duration     `hcl:"lookback,optional" unset:"all records" doc:"how far back usage counts; what is archived in it is read from its archives in each run"`
	Credit     string            `hcl:"credit,optional" default:"spread" allowed:"spread start" doc:"spread: what was used in the look-back; start: all of the runs that began in it, AUDITOR's rule"`
	Running    bool              `hcl:"running,optional" default:"true" doc:"running jobs count too; never with credit = \"start\""`
	GroupMeta  string            `hcl:"group_meta,optional" default:"group_id" doc:"the meta key whose first value is the group"`
	Mode       string            `hcl:"mode,optional" default:"scaled_by_sum" allowed:"scaled_by_sum full_spread" doc:"see below"`
	Priority   map[string]int64  `hcl:"priority,optional" unset:"{ min = 0, max = 1024 }" doc:"the least and the greatest priority"`
	Refresh    time.Duration     `hcl:"refresh,optional" default:"1d" doc:"what cannot be read back is set again after this time though it has not changed; \"0s\": never"`
	Timeout    time.Duration     `hcl:"timeout,optional" default:"30s" min:"1s" max:"2m" doc:"of one program; then it is killed with all that it has started"`
	Env        map[string]string `hcl:"env,optional" doc:"beside PATH, HOME, LANG, LC_ALL and TZ of the daemon, and the SLURM_CONF of the block plugin"`
	programs
	Groups []groupBlock `hcl:"group,block" unset:"required" doc:"a group that gets a priority, by the value of group_meta; at most 500. It may have programs of its own; one with a command of its own is read back by its own read only"`
}

// programs are what sets and reads priorities.
type programs struct {
	Command  hcl.Strings `hcl:"command,optional" unset:"scontrol update PartitionName={1} PriorityJobFactor={priority}" doc:"a program's absolute path and its arguments"`
	Commands [][]string  `hcl:"commands,optional" doc:"several: all of them run for each group, in their order"`
	Read     *struct {
		Command hcl.Strings `hcl:"command" doc:"a program that writes the priority"`
		Pattern string      `hcl:"pattern,optional" default:"PriorityJobFactor=([0-9]+)" doc:"a regular expression with one pair of parentheses around the number"`
	} `hcl:"read,block" unset:"of the default command scontrol show partition {1}" doc:"how a priority is read back; without it, nothing is"`
}

// groupBlock is a block group "NAME" { … }.
type groupBlock struct {
	Name   hcl.String  `hcl:"name,label"`
	Params hcl.Strings `hcl:"params,optional" default:"[]" doc:"what its commands have for {1}, {2} and so on"`
	programs
}

// config is what the action's config block says.
type config struct {
	components map[string]string // name to score; "": the amount alone
	lookback   time.Duration     // 0: all records
	atStart    bool              // all of a run is credited to its start, as AUDITOR does
	running    bool              // runs that go on count
	groupMeta  string
	spread     bool // FullSpread; false: ScaledBySum
	min, max   int64
	groups     []group
	env        map[string]string
	timeout    time.Duration // of one program
	refresh    time.Duration // after which what cannot be read back is set again; 0: never
}

// group is a group of the mapping.
type group struct {
	name     string
	params   []string
	commands []command
	read     *reading // nil: nothing is read back
}

// reading is how a priority is found out.
type reading struct {
	command command
	pattern string
}

const (
	maxGroups  = 500 // what was set last of all of them fits the state
	maxName    = 64  // as a label of a metric
	anyPattern = `PriorityJobFactor=([0-9]+)`
)

// The placeholders that are no params.
const (
	groupHolder    = "{group}"
	priorityHolder = "{priority}"
)

// decodeConfig reads the configuration and reports every problem.
func decodeConfig(cfg *sdk.Config) config {
	var s settings
	_ = cfg.Decode(&s) // it is in what Err returns
	c := config{
		components: s.Components, lookback: s.Lookback, atStart: s.Credit == "start", groupMeta: s.GroupMeta,
		spread: s.Mode == "full_spread", env: s.Env, timeout: s.Timeout, refresh: s.Refresh,
	}
	switch {
	case cfg.Has("components") && len(c.components) == 0:
		cfg.Errorf("components", `it is empty; expected a component and its score, for example { Cores = "HEPscore23" }`)
	case cfg.Has("lookback") && c.lookback <= 0:
		cfg.Errorf("lookback", "it is not more than nothing; leave it out for all records")
	}
	if c.atStart && cfg.Has("running") && s.Running {
		cfg.Errorf("running", `with credit = "start" only runs that have ended count, as with AUDITOR`)
	}
	c.running = s.Running && !c.atStart
	c.readRange(cfg, s.Priority)
	c.readGroups(cfg, &s)
	return c
}

// readRange reads priority = { min = …, max = … }.
func (c *config) readRange(cfg *sdk.Config, given map[string]int64) {
	c.min, c.max = 0, 1024
	for name, n := range given {
		to := map[string]*int64{"min": &c.min, "max": &c.max}[name]
		if to == nil || n < 0 {
			cfg.Errorf("priority", "expected { min = 0, max = 1024 }, of whole numbers that are not less than 0")
			return
		}
		*to = n
	}
	if c.min > c.max {
		cfg.Errorf("priority", "min, %d, is more than max, %d", c.min, c.max)
	}
}

// readGroups reads the blocks of groups, with what runs for all of them.
func (c *config) readGroups(cfg *sdk.Config, s *settings) {
	commands, read := s.readCommands(cfg.Body), s.readReading(cfg.Body)
	if commands == nil {
		commands = []command{{"/usr/bin/scontrol", "update", "PartitionName={1}", "PriorityJobFactor={priority}"}}
		if read == nil {
			read = &reading{command{"/usr/bin/scontrol", "show", "partition", "{1}"}, anyPattern}
		}
	}
	if len(s.Groups) == 0 || len(s.Groups) > maxGroups {
		cfg.Errorf("group", `there are %d blocks of groups; expected 1 to %d, for example group "atlas" { params = ["part_atlas"] }`, len(s.Groups), maxGroups)
		return
	}
	blocks, taken := cfg.Blocks("group"), map[string]string{}
	for _, one := range s.Groups {
		b := blocks[slices.IndexFunc(blocks, func(b *sdk.Body) bool { return slices.Equal(b.Labels(), []string{one.Name.Value}) })]
		if len(one.Name.Value) > maxName {
			b.Errorf("group", "a name has at most %d bytes", maxName)
			continue
		}
		g := group{name: one.Name.Value, params: one.Params, commands: commands, read: read}
		g.overrideCommands(b, &one.programs)
		if g.checkParams(b) && g.checkNeeds(b) {
			g.checkDuplicate(b, taken)
		}
		c.groups = append(c.groups, g)
	}
}

// overrideCommands sets the commands that a group has of its own. Those that are read back
// are the general ones then only if it has no way of its own to read.
func (g *group) overrideCommands(b *sdk.Body, p *programs) {
	own, read := p.readCommands(b), p.readReading(b)
	if own != nil {
		g.commands, g.read = own, nil
	}
	if read != nil {
		g.read = read
	}
}

func (g *group) checkParams(b *sdk.Body) bool {
	well := true
	for i, p := range g.params {
		if err := checkWord(p); err != nil {
			b.ElementErrorf("params", i, "%v", err)
			well = false
		}
	}
	return well
}

// checkNeeds checks that the group has what its commands refer to.
func (g *group) checkNeeds(b *sdk.Body) bool {
	all := slices.Clone(g.commands)
	if g.read != nil {
		all = append(all, g.read.command)
	}
	for _, c := range all {
		params, byName := c.placeholdersUsed()
		if params > len(g.params) {
			b.Errorf("params", "group %q has %d params, and the command %q refers to {%d}", g.name, len(g.params), strings.Join(c, " "), params)
			return false
		}
		if err := checkWord(g.name); byName && err != nil {
			b.Errorf("group", "{group} in the command %q: %v", strings.Join(c, " "), err)
			return false
		}
	}
	return true
}

// checkDuplicate refuses that two groups set the same priority.
func (g *group) checkDuplicate(b *sdk.Body, taken map[string]string) {
	for _, c := range g.commands {
		line := strings.Join(c.fillPlaceholders(g.placeholderValues()), "\x00")
		if other, ok := taken[line]; ok {
			b.Errorf("params", "group %q would run the same command as group %q, and undo what that does", g.name, other)
			return
		}
		taken[line] = g.name
	}
}

// placeholderValues are the group's values for placeholders.
func (g *group) placeholderValues() map[string]string {
	out := map[string]string{groupHolder: g.name}
	for i, p := range g.params {
		out[fmt.Sprintf("{%d}", i+1)] = p
	}
	return out
}

// readCommands reads and checks command = […] or commands = [[…], […]]; nil: there are none.
func (p *programs) readCommands(b *sdk.Body) []command {
	if p.Command != nil {
		if p.Commands != nil {
			b.Errorf("commands", "there is command too; write all into commands")
		}
		c, ok := readCommand(b, p.Command, priorityHolder, groupHolder)
		if !ok {
			return []command{}
		}
		return []command{c}
	}
	if p.Commands == nil {
		return nil
	}
	if len(p.Commands) == 0 {
		b.Errorf("commands", `expected a list of commands, [["/usr/bin/scontrol", …], […]]; one alone is command = […]`)
	}
	out := []command{}
	for i, words := range p.Commands {
		c := command(words)
		if err := c.checkCommand(priorityHolder, groupHolder); err != nil {
			b.ElementErrorf("commands", i, "%v", err)
		}
		out = append(out, c)
	}
	return out
}

// readCommand reads and checks the attribute command of a block.
func readCommand(b *sdk.Body, words []string, allowed ...string) (command, bool) {
	c := command(words)
	if err := c.checkCommand(allowed...); err != nil {
		b.Errorf("command", "%v", err)
		return nil, false
	}
	return c, true
}

// readReading reads and checks the block read { … }; nil: there is none.
func (p *programs) readReading(parent *sdk.Body) *reading {
	if p.Read == nil {
		return nil
	}
	b, r := parent.Block("read"), &reading{pattern: p.Read.Pattern}
	if p.Read.Command != nil {
		r.command, _ = readCommand(b, p.Read.Command, groupHolder)
	}
	if p, err := regexp.Compile(r.pattern); err != nil {
		b.Errorf("pattern", "%v", err)
	} else if p.NumSubexp() != 1 {
		b.Errorf("pattern", "it has %d groups in parentheses; expected one, which is the priority, for example %s", p.NumSubexp(), anyPattern)
	}
	return r
}

// programEnvironment is the environment of programs: what the config block says, and the SLURM_CONF
// that the plugin was given.
func (c *config) programEnvironment() map[string]string {
	env := map[string]string{}
	if conf := os.Getenv("SLURM_CONF"); conf != "" {
		env["SLURM_CONF"] = conf
	}
	maps.Copy(env, c.env)
	return env
}
