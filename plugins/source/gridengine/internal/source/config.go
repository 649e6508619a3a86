package source

import (
	"cmp"
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

// settings are those of the config block.
type settings struct {
	Root       hcl.Absolute `hcl:"sge_root,optional" unset:"SGE_ROOT in the plugin's environment, or the first usual folder that is there" doc:"Grid Engine's folder; usual are /var/lib/gridengine, /opt/sge, /opt/gridengine, /usr/share/gridengine, /usr/local/sge, /gridware/sge, /sge, /opt/uge and /opt/age"`
	Path       hcl.Absolute `hcl:"path,optional" unset:"common/accounting in the cell's folder below sge_root" doc:"the accounting file; the cell is SGE_CELL or default"`
	Rotated    hcl.Strings  `hcl:"rotated,optional" unset:"none" doc:"patterns of old files that are elsewhere or have other names than those below"`
	Commands   hcl.Absolute `hcl:"commands,optional" unset:"looked for in bin/* below sge_root, /usr/bin, /usr/local/bin, /usr/lib/gridengine" doc:"folder of qhost, qstat and qconf; without the first two capacity and census are not told"`
	Cells      []cellBlock  `hcl:"cell,block" unset:"one cell" doc:"several cells: a block for each with what is its own; the cell becomes part of the ids"`
	Import     hcl.Strings  `hcl:"import,optional" unset:"none" doc:"absolute paths or patterns of files to read once, in this order, each from its beginning; nothing is followed then. bursar import gridengine FILE… sets it"`
	ImportCell string       `hcl:"import_cell,optional" unset:"the only cell" doc:"with several cells: of which one the files to import are"`
	filter
	Earliest          hcl.Time      `hcl:"earliest,optional" unset:"all that there is" doc:"only runs that ended at this time or later, for example \"2024-01-01\""`
	MemoryRequests    hcl.Strings   `hcl:"memory_requests,optional" default:"[\"h_vmem\", \"m_mem_free\", \"h_rss\", \"mem_free\", \"virtual_free\"]" doc:"resources by which jobs ask for memory; the first that a job asked for counts"`
	MemoryPer         string        `hcl:"memory_per,optional" default:"slot" allowed:"slot job" doc:"for what that is asked"`
	GPURequests       hcl.Strings   `hcl:"gpu_requests,optional" default:"[\"gpu\"]" doc:"resources by which jobs ask for GPUs, for example [\"gpu\", \"ngpus\"]; the first that a job asked for counts"`
	GPUModelRequests  hcl.Strings   `hcl:"gpu_model_requests,optional" unset:"none" doc:"resources by which jobs ask for a model of GPU, for example [\"gpu_model\"]; the first that a job asked for counts"`
	GPUPer            string        `hcl:"gpu_per,optional" default:"slot" allowed:"slot job host" doc:"for what that is asked"`
	OneHost           hcl.Strings   `hcl:"one_host_pe,optional" unset:"none" doc:"parallel environments whose jobs run on one host, such as [\"smp\"], for gpu_per = \"host\""`
	Lag               time.Duration `hcl:"lag,optional" default:"2m" max:"24h" doc:"how long qmaster may take to write a run; the source says that it is complete up to so long ago"`
	Capacity          bool          `hcl:"capacity,optional" default:"true" doc:"tell what the cluster has"`
	CapacityInterval  time.Duration `hcl:"capacity_interval,optional" default:"10m" max:"24h" doc:"how often to look"`
	Census            bool          `hcl:"census,optional" default:"true" doc:"tell how many jobs of whom run and wait"`
	CensusInterval    time.Duration `hcl:"census_interval,optional" default:"1m" max:"24h" doc:"how often to look"`
	Directory         bool          `hcl:"directory,optional" default:"true" doc:"tell who belongs to which groups"`
	DirectoryInterval time.Duration `hcl:"directory_interval,optional" default:"1h" max:"24h" doc:"how often to look"`
	Names             bool          `hcl:"names,optional" default:"true" doc:"put the names of users into the directory"`
	Getent            hcl.Absolute  `hcl:"getent,optional" default:"/usr/bin/getent" doc:"path of getent"`
	Timeout           time.Duration `hcl:"timeout,optional" default:"1m" min:"1s" max:"1h" doc:"how long a command may give no output before it is killed"`
}

// cellBlock is a block cell "<name>" { … }.
type cellBlock struct {
	Name     hcl.String   `hcl:"name,label"`
	Root     hcl.Absolute `hcl:"sge_root,optional"`
	Path     hcl.Absolute `hcl:"path,optional"`
	Rotated  hcl.Strings  `hcl:"rotated,optional"`
	Commands hcl.Absolute `hcl:"commands,optional"`
}

// config is the evaluated config block.
type config struct {
	settings

	cells   []gridCell
	several bool // cells are named: they are a part of ids
	imports []string
	// importCell is the cell of the files to import, as ids have it.
	importCell string
	facts      map[string]time.Duration // that are told, with how often at most
}

// gridCell is a cell of Grid Engine.
type gridCell struct {
	name     string // as ids have it; "" where there is only one
	sgeCell  string
	root     string // SGE_ROOT; "" when only a path is known
	commands string // folder of qhost and qstat; "" when there is none
	log      follow.Log
}

// explainMissing says what to do about an accounting file that is not there.
func (c *gridCell) explainMissing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", c.log.Path, err)
	}
	hint := "Grid Engine makes it when the first job ends; if it is elsewhere, set path or sge_root in the source's config block"
	if c.root == "" && os.Getenv("SGE_ROOT") == "" {
		hint = "set sge_root or path in the source's config block; SGE_ROOT is not in the plugin's environment"
	}
	return fmt.Errorf("there is no accounting file at %s: %s (%w)", c.log.Path, hint, fs.ErrNotExist)
}

// usualRoots are where Grid Engine usually is.
func usualRoots() []string {
	return []string{"/var/lib/gridengine", "/opt/sge", "/opt/gridengine", "/usr/share/gridengine", "/usr/local/sge", "/gridware/sge", "/sge", "/opt/uge", "/opt/age"}
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	var c config
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.checkStates(cfg)
	c.imports = follow.ImportedFiles(cfg, c.Import)
	c.readCells(cfg)
	c.readImportCell(cfg)
	c.readFacts()
	return c
}

func (c *config) readCells(cfg *sdk.Config) {
	root := cmp.Or(string(c.Root), defaultRoot())
	follow.CheckPatterns(cfg.Body, "rotated", c.Rotated)
	if len(c.Cells) == 0 {
		name := cmp.Or(os.Getenv("SGE_CELL"), "default")
		one := gridCell{sgeCell: name, root: root, commands: commandsIn(string(c.Commands), root)}
		one.log = follow.Log{Path: cmp.Or(string(c.Path), filepath.Join(root, name, "common/accounting")), More: c.Rotated}
		c.cells = []gridCell{one}
		return
	}
	if cfg.Has("path") {
		cfg.Errorf("path", "with cell blocks, path belongs into each of them")
	}
	if len(c.Rotated) > 0 {
		cfg.Errorf("rotated", "with cell blocks, rotated belongs into each of them")
	}
	c.several = true
	blocks := cfg.Blocks("cell")
	for _, b := range c.Cells {
		at := blocks[slices.IndexFunc(blocks, func(o *sdk.Body) bool { return slices.Equal(o.Labels(), []string{b.Name.Value}) })]
		if strings.ContainsAny(b.Name.Value, "/ :") {
			at.Errorf("cell", "a cell has one label, its name: cell \"default\" { … }")
			continue
		}
		follow.CheckPatterns(at, "rotated", b.Rotated)
		one := gridCell{name: b.Name.Value, sgeCell: b.Name.Value, root: cmp.Or(string(b.Root), root)}
		one.log = follow.Log{Path: cmp.Or(string(b.Path), filepath.Join(one.root, one.name, "common/accounting")), More: b.Rotated}
		one.commands = commandsIn(cmp.Or(string(b.Commands), string(c.Commands)), one.root)
		c.cells = append(c.cells, one)
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
	c.importCell = cmp.Or(c.ImportCell, c.importCell)
	switch known := slices.Contains(names, c.importCell); {
	case len(c.imports) == 0 || known:
	case cfg.Has("import_cell"):
		cfg.Errorf("import_cell", "%q is not a cell; cells are %s", c.importCell, strings.Join(names, ", "))
	default:
		cfg.Errorf("import", "set import_cell too, which says of which cell the files are: one of %s", strings.Join(names, ", "))
	}
}

// defaultRoot is SGE_ROOT, or the first of the usual places that is there.
func defaultRoot() string {
	if root := os.Getenv("SGE_ROOT"); root != "" {
		return root
	}
	for _, root := range usualRoots() {
		if _, err := os.Stat(root); err == nil {
			return root
		}
	}
	return usualRoots()[0]
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

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	Queues      hcl.Strings `hcl:"queues,optional" unset:"all" doc:"only runs of these queues"`
	Users       hcl.Strings `hcl:"users,optional" unset:"all" doc:"only runs of these users"`
	Groups      hcl.Strings `hcl:"groups,optional" unset:"all" doc:"only runs of these groups"`
	Projects    hcl.Strings `hcl:"projects,optional" unset:"all" doc:"only runs of these projects"`
	Departments hcl.Strings `hcl:"departments,optional" unset:"all" doc:"only runs of these departments"`
	States      hcl.Strings `hcl:"states,optional" unset:"all" doc:"only runs that ended so: COMPLETED, FAILED, KILLED, CANCELLED, TIMEOUT, REQUEUED"`
}

func (f *filter) checkStates(cfg *sdk.Config) {
	for i, s := range f.States {
		f.States[i] = strings.ToUpper(s)
		if slices.Contains(accounting.States(), f.States[i]) {
			continue
		}
		hint := "known are " + strings.Join(accounting.States(), ", ")
		if near := hcl.Suggest(f.States[i], accounting.States()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		cfg.ElementErrorf("states", i, "%q is not a state; %s", s, hint)
	}
}

func (f *filter) wantsLine(l *accounting.Line) bool {
	return inList(f.Queues, l.Queue()) && inList(f.Users, l.Owner()) && inList(f.Groups, l.Group()) &&
		inList(f.Projects, l.Project()) && inList(f.Departments, l.Department()) &&
		(len(f.States) == 0 || slices.Contains(f.States, l.State()))
}

func inList(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
