package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

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
	maxTimeout = 2 * time.Minute
	anyPattern = `PriorityJobFactor=([0-9]+)`
)

// The placeholders that are no params.
const (
	groupHolder    = "{group}"
	priorityHolder = "{priority}"
)

// read reads the configuration and reports every problem.
func read(cfg *sdk.Config) config {
	c := config{
		components: cfg.StringMap("components", nil),
		lookback:   cfg.Duration("lookback", 0),
		atStart:    cfg.Enum("credit", "spread", "spread", "start") == "start",
		running:    cfg.Bool("running", true),
		groupMeta:  cfg.String("group_meta", "group_id"),
		spread:     cfg.Enum("mode", "scaled_by_sum", "scaled_by_sum", "full_spread") == "full_spread",
		env:        cfg.StringMap("env", nil),
		timeout:    cfg.Duration("timeout", 30*time.Second),
		refresh:    cfg.Duration("refresh", 24*time.Hour),
	}
	cfg.Require("components")
	switch {
	case cfg.Has("components") && len(c.components) == 0:
		cfg.Errorf("components", `it is empty; expected a component and its score, for example { Cores = "HEPscore23" }`)
	case cfg.Has("lookback") && c.lookback <= 0:
		cfg.Errorf("lookback", "it is not more than nothing; leave it out for all records")
	case c.timeout < time.Second || c.timeout > maxTimeout:
		cfg.Errorf("timeout", "%s is not between 1s and %s", c.timeout, maxTimeout)
	}
	if c.atStart && cfg.Has("running") && c.running {
		cfg.Errorf("running", `with credit = "start" only runs that have ended count, as with AUDITOR`)
	}
	c.running = c.running && !c.atStart
	c.readRange(cfg)
	c.readGroups(cfg)
	return c
}

// readRange reads priority = { min = …, max = … }.
func (c *config) readRange(cfg *sdk.Config) {
	c.min, c.max = 0, 1024
	v := cfg.Value("priority")
	if !v.IsNull() && v.Type() != sdk.TypeMap {
		cfg.Errorf("priority", "expected { min = 0, max = 1024 }")
		return
	}
	for name, n := range v.Map() {
		to := map[string]*int64{"min": &c.min, "max": &c.max}[name]
		if to == nil || n.Type() != sdk.TypeInt || n.Int() < 0 {
			cfg.Errorf("priority", "expected { min = 0, max = 1024 }, of whole numbers that are not less than 0")
			return
		}
		*to = n.Int()
	}
	if c.min > c.max {
		cfg.Errorf("priority", "min, %d, is more than max, %d", c.min, c.max)
	}
}

// readGroups reads the blocks of groups, with what runs for all of them.
func (c *config) readGroups(cfg *sdk.Config) {
	commands, read := readCommands(cfg.Body), readRead(cfg.Body)
	if commands == nil {
		commands = []command{{"/usr/bin/scontrol", "update", "PartitionName={1}", "PriorityJobFactor={priority}"}}
		if read == nil {
			read = &reading{command{"/usr/bin/scontrol", "show", "partition", "{1}"}, anyPattern}
		}
	}
	blocks, seen := cfg.Blocks("group"), map[string]bool{}
	if len(blocks) == 0 || len(blocks) > maxGroups {
		cfg.Errorf("group", `there are %d blocks of groups; expected 1 to %d, for example group "atlas" { params = ["part_atlas"] }`, len(blocks), maxGroups)
		return
	}
	taken := map[string]string{}
	for _, b := range blocks {
		labels := b.Labels()
		if len(labels) != 1 || labels[0] == "" || len(labels[0]) > maxName || seen[labels[0]] {
			b.Errorf("group", `write group "NAME" { params = […] }, each name once and of at most %d bytes`, maxName)
			continue
		}
		seen[labels[0]] = true
		g := group{name: labels[0], params: b.Strings("params", nil), commands: commands, read: read}
		g.override(b)
		if g.checkParams(b) && g.checkNeeds(b) {
			g.checkTaken(b, taken)
		}
		c.groups = append(c.groups, g)
	}
}

// override takes the commands that a group has of its own. Those that are read back
// are the general ones then only if it has no way of its own to read.
func (g *group) override(b *sdk.Body) {
	own, read := readCommands(b), readRead(b)
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
		params, byName := c.needs()
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

// checkTaken refuses that two groups set the same priority.
func (g *group) checkTaken(b *sdk.Body, taken map[string]string) {
	for _, c := range g.commands {
		line := strings.Join(c.fill(g.values()), "\x00")
		if other, ok := taken[line]; ok {
			b.Errorf("params", "group %q would run the same command as group %q, and undo what that does", g.name, other)
			return
		}
		taken[line] = g.name
	}
}

// values are what the group has for placeholders.
func (g *group) values() map[string]string {
	out := map[string]string{groupHolder: g.name}
	for i, p := range g.params {
		out[fmt.Sprintf("{%d}", i+1)] = p
	}
	return out
}

// readCommands reads command = […] or commands = [[…], […]]; nil: there are none.
func readCommands(b *sdk.Body) []command {
	if b.Has("command") {
		if c, ok := readCommand(b, "command", priorityHolder, groupHolder); ok {
			if b.Has("commands") {
				b.Errorf("commands", "there is command too; write all into commands")
			}
			_ = b.Value("commands")
			return []command{c}
		}
		return []command{}
	}
	v, out := b.Value("commands"), []command{}
	switch {
	case v.IsNull():
		return nil
	case v.Type() != sdk.TypeList || len(v.List()) == 0:
		b.Errorf("commands", `expected a list of commands, [["/usr/bin/scontrol", …], […]]; one alone is command = […]`)
	}
	for i, one := range v.List() {
		var c command
		for _, arg := range one.List() {
			if arg.Type() != sdk.TypeString {
				b.ElementErrorf("commands", i, "expected a list of strings")
			}
			c = append(c, arg.Str())
		}
		if err := c.check(priorityHolder, groupHolder); err != nil {
			b.ElementErrorf("commands", i, "%v", err)
		}
		out = append(out, c)
	}
	return out
}

func readCommand(b *sdk.Body, name string, allowed ...string) (command, bool) {
	c := command(b.Strings(name, nil))
	if err := c.check(allowed...); err != nil {
		b.Errorf(name, "%v", err)
		return nil, false
	}
	return c, true
}

// readRead reads the block read { … }; nil: there is none.
func readRead(parent *sdk.Body) *reading {
	b := parent.Block("read")
	if b == nil {
		return nil
	}
	b.Require("command")
	r := &reading{pattern: b.String("pattern", anyPattern)}
	if b.Has("command") {
		r.command, _ = readCommand(b, "command", groupHolder)
	}
	if p, err := regexp.Compile(r.pattern); err != nil {
		b.Errorf("pattern", "%v", err)
	} else if p.NumSubexp() != 1 {
		b.Errorf("pattern", "it has %d groups in parentheses; expected one, which is the priority, for example %s", p.NumSubexp(), anyPattern)
	}
	return r
}

// environment is that of programs: what the config block says, and the SLURM_CONF
// that the plugin was given.
func (c *config) environment() map[string]string {
	env := map[string]string{}
	if conf := os.Getenv("SLURM_CONF"); conf != "" {
		env["SLURM_CONF"] = conf
	}
	maps.Copy(env, c.env)
	return env
}
