package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/accounting"
)

// config is the evaluated config block.
type config struct {
	cells   []gridCell
	several bool // cells are named: they are a part of ids
	imports []string
	// importCell is the cell of the files to import, as ids have it.
	importCell string

	filter   filter
	earliest time.Time // zero: all that there is
	memory   accounting.Memory
	lag      time.Duration

	facts   map[string]time.Duration // that are told, with how often at most
	timeout time.Duration
	getent  string
	people  bool // with names
}

// gridCell is a cell of Grid Engine.
type gridCell struct {
	name     string // as ids have it; "" where there is only one
	sgeCell  string
	root     string // SGE_ROOT; "" when only a path is known
	commands string // folder of qhost and qstat; "" when there is none
	log      follow.Log
}

// explain says what to do about an accounting file that is not there.
func (c *gridCell) explain(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", c.log.Path, err)
	}
	hint := "Grid Engine makes it when the first job ends; if it is elsewhere, set path or sge_root in the source's config block"
	if c.root == "" && os.Getenv("SGE_ROOT") == "" {
		hint = "set sge_root or path in the source's config block; SGE_ROOT is not in the plugin's environment"
	}
	return fmt.Errorf("there is no accounting file at %s: %s (%w)", c.log.Path, hint, fs.ErrNotExist)
}

// roots are where Grid Engine usually is.
func roots() []string {
	return []string{"/var/lib/gridengine", "/opt/sge", "/opt/gridengine", "/usr/share/gridengine", "/usr/local/sge", "/gridware/sge", "/sge", "/opt/uge", "/opt/age"}
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	c := config{earliest: cfg.Time("earliest", time.Time{}), filter: readFilter(cfg), imports: importsOf(cfg)}
	c.memory.Requests = cfg.Strings("memory_requests", []string{"h_vmem", "m_mem_free", "h_rss", "mem_free", "virtual_free"})
	c.memory.PerJob = cfg.Enum("memory_per", "slot", "slot", "job") == "job"
	c.lag = duration(cfg, "lag", 2*time.Minute, 0, 24*time.Hour)
	c.timeout = duration(cfg, "timeout", time.Minute, time.Second, time.Hour)
	c.readCells(cfg)
	c.readImportCell(cfg)
	c.readFacts(cfg)
	return c
}

func (c *config) readCells(cfg *sdk.Config) {
	root := cfg.String("sge_root", defaultRoot())
	absolute(cfg.Body, "sge_root", root)
	blocks := cfg.Blocks("cell")
	commands := cfg.String("commands", "")
	if commands != "" {
		absolute(cfg.Body, "commands", commands)
	}
	more := patterns(cfg.Body, "rotated")
	if len(blocks) == 0 {
		name := os.Getenv("SGE_CELL")
		if name == "" {
			name = "default"
		}
		one := gridCell{sgeCell: name, root: root, commands: commandsIn(commands, root)}
		one.log = follow.Log{Path: cfg.String("path", filepath.Join(root, name, "common/accounting")), More: more}
		absolute(cfg.Body, "path", one.log.Path)
		c.cells = []gridCell{one}
		return
	}
	if cfg.Has("path") {
		cfg.Errorf("path", "with cell blocks, path belongs into each of them")
	}
	c.several = true
	for _, b := range blocks {
		c.readCell(b, root, commands)
	}
	if len(more) > 0 {
		cfg.Errorf("rotated", "with cell blocks, rotated belongs into each of them")
	}
}

// readImportCell reads of which cell the files to import are.
func (c *config) readImportCell(cfg *sdk.Config) {
	var names []string
	for i := range c.cells {
		names = append(names, c.cells[i].name)
	}
	if c.several && len(names) == 1 {
		c.importCell = names[0]
	}
	c.importCell = cfg.String("import_cell", c.importCell)
	switch known := slices.Contains(names, c.importCell); {
	case len(c.imports) == 0 || known:
	case cfg.Has("import_cell"):
		cfg.Errorf("import_cell", "%q is no cell; cells are %s", c.importCell, strings.Join(names, ", "))
	default:
		cfg.Errorf("import", "set import_cell too, which says of which cell the files are: one of %s", strings.Join(names, ", "))
	}
}

func (c *config) readCell(b *sdk.Body, root, commands string) {
	labels := b.Labels()
	if len(labels) != 1 || labels[0] == "" || strings.ContainsAny(labels[0], "/ :") {
		b.Errorf("cell", "a cell has one label, its name: cell \"default\" { … }")
		return
	}
	one := gridCell{name: labels[0], sgeCell: labels[0], root: b.String("sge_root", root)}
	if slices.ContainsFunc(c.cells, func(other gridCell) bool { return other.name == one.name }) {
		b.Errorf("cell", "the cell %q is there twice", one.name)
	}
	one.log = follow.Log{
		Path: b.String("path", filepath.Join(one.root, one.name, "common/accounting")), More: patterns(b, "rotated"),
	}
	absolute(b, "path", one.log.Path)
	one.commands = commandsIn(b.String("commands", commands), one.root)
	c.cells = append(c.cells, one)
}

// defaultRoot is SGE_ROOT, or the first of the usual places that is there.
func defaultRoot() string {
	if root := os.Getenv("SGE_ROOT"); root != "" {
		return root
	}
	for _, root := range roots() {
		if _, err := os.Stat(root); err == nil {
			return root
		}
	}
	return roots()[0]
}

// commandsIn finds the folder of Grid Engine's commands. Other schedulers have a
// qstat too, but no qhost.
func commandsIn(configured, root string) string {
	if configured != "" {
		return configured
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "bin", "*")) // a pattern that is right
	for _, dir := range append(dirs, "/usr/bin", "/usr/local/bin", "/usr/lib/gridengine") {
		if isProgram(filepath.Join(dir, "qhost")) && isProgram(filepath.Join(dir, "qstat")) {
			return dir
		}
	}
	return ""
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// importsOf are the files to import, with patterns expanded, in the order in which
// they are written; those of a pattern by name.
func importsOf(cfg *sdk.Config) []string {
	var all []string
	for i, pattern := range cfg.Strings("import", nil) {
		if !filepath.IsAbs(pattern) {
			cfg.ElementErrorf("import", i, "%q is no absolute path", pattern)
			continue
		}
		found, err := filepath.Glob(pattern)
		switch {
		case err != nil:
			cfg.ElementErrorf("import", i, "%q is no pattern: %s", pattern, err)
		case len(found) == 0:
			cfg.ElementErrorf("import", i, "there is no file %s", pattern)
		}
		for _, path := range found {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

func patterns(b *sdk.Body, key string) []string {
	list := b.Strings(key, nil)
	for i, pattern := range list {
		if _, err := filepath.Match(pattern, ""); err != nil || !filepath.IsAbs(pattern) {
			b.ElementErrorf(key, i, "%q is no absolute path or pattern", pattern)
		}
	}
	return list
}

func absolute(b *sdk.Body, name, path string) {
	if !filepath.IsAbs(path) {
		b.Errorf(name, "%q is no absolute path", path)
	}
}

func duration(cfg *sdk.Config, name string, def, least, most time.Duration) time.Duration {
	d := cfg.Duration(name, def)
	if d < least || d > most {
		cfg.Errorf(name, "%s is out of range; allowed is %s to %s", d, least, most)
	}
	return d
}

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	queues, users, groups, projects, departments, states []string
}

func readFilter(cfg *sdk.Config) filter {
	f := filter{
		queues: cfg.Strings("queues", nil), users: cfg.Strings("users", nil), groups: cfg.Strings("groups", nil),
		projects: cfg.Strings("projects", nil), departments: cfg.Strings("departments", nil), states: cfg.Strings("states", nil),
	}
	for i, s := range f.states {
		f.states[i] = strings.ToUpper(s)
		if slices.Contains(accounting.States(), f.states[i]) {
			continue
		}
		hint := "known are " + strings.Join(accounting.States(), ", ")
		if near := hcl.Suggest(f.states[i], accounting.States()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		cfg.ElementErrorf("states", i, "%q is no state; %s", s, hint)
	}
	return f
}

func (f *filter) wants(l *accounting.Line) bool {
	return among(f.queues, l.Queue()) && among(f.users, l.Owner()) && among(f.groups, l.Group()) &&
		among(f.projects, l.Project()) && among(f.departments, l.Department()) &&
		(len(f.states) == 0 || slices.Contains(f.states, l.State()))
}

func among(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
