package source

import (
	"cmp"
	"context"
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
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/condor"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/job"
)

// kind is what ads of a schedd tell of.
type kind int

const (
	epochs  kind = iota // runs
	history             // jobs, and the last run of each
)

// settings are those of the config block.
type settings struct {
	files
	Through    string       `hcl:"through,optional" default:"files" allowed:"files commands" doc:"how history is read: its files directly, or by condor_history, which also asks schedds on other machines"`
	Pool       string       `hcl:"pool,optional" unset:"that of condor_config" doc:"central manager that the commands ask, as -pool has it"`
	Commands   hcl.Absolute `hcl:"commands,optional" default:"/usr/bin" doc:"folder of condor_history, condor_q, condor_status and condor_config_val"`
	Config     hcl.Absolute `hcl:"condor_config,optional" unset:"CONDOR_CONFIG in the plugin's environment, or where HTCondor looks" doc:"configuration of HTCondor for the commands"`
	Constraint string       `hcl:"constraint,optional" unset:"none" doc:"only jobs for which this ClassAd expression is true; through commands only"`
	Schedds    []block      `hcl:"schedd,block" unset:"one schedd" doc:"several schedds: a block for each, named as in condor_status -schedd, with what is its own; those without history and job_histories are asked by commands"`
	Import     hcl.Strings  `hcl:"import,optional" unset:"none" doc:"absolute paths or patterns of history and epoch files to read once, each from its beginning, epochs first; nothing is followed then. bursar import htcondor FILE… sets it"`
	filter
	Earliest         hcl.Time      `hcl:"earliest,optional" unset:"all that there is" doc:"only runs that ended at this time or later, for example \"2024-01-01\""`
	Open             bool          `hcl:"open,optional" default:"false" doc:"send jobs that run now, too, as condor_q has them; each becomes final when it ends"`
	Lag              time.Duration `hcl:"lag,optional" default:"2m" max:"24h" doc:"how long the schedd may take to write a run; the source says that it is complete up to so long ago"`
	Capacity         bool          `hcl:"capacity,optional" default:"true" doc:"tell what the pool has"`
	CapacityInterval time.Duration `hcl:"capacity_interval,optional" default:"10m" max:"24h" doc:"how often to look"`
	Census           bool          `hcl:"census,optional" default:"true" doc:"tell how many of the jobs that are wanted run and wait, and whose they are"`
	CensusInterval   time.Duration `hcl:"census_interval,optional" default:"1m" max:"24h" doc:"how often to look"`
	Timeout          time.Duration `hcl:"timeout,optional" default:"1m" min:"1s" max:"1h" doc:"how long a command may give no output before it is killed"`
}

// files are where a schedd keeps its history.
type files struct {
	History       hcl.Absolute `hcl:"history,optional" unset:"HISTORY of condor_config_val, or the first usual path that is there" doc:"the history file; its rotations are found beside it"`
	Epochs        hcl.Absolute `hcl:"epochs,optional" unset:"JOB_EPOCH_HISTORY of condor_config_val, or epoch_history beside the history, where it is there" doc:"the epoch history file, with each run of each job"`
	Rotated       hcl.Strings  `hcl:"rotated,optional" unset:"none" doc:"patterns of old history files that are elsewhere"`
	RotatedEpochs hcl.Strings  `hcl:"rotated_epochs,optional" unset:"none" doc:"patterns of old epoch history files that are elsewhere"`
	JobHistories  hcl.Absolute `hcl:"job_histories,optional" unset:"none" doc:"folder with a history file for each job, PER_JOB_HISTORY_DIR, in place of the history file"`
	JobEpochs     hcl.Absolute `hcl:"job_epochs,optional" unset:"none" doc:"folder with an epoch file for each job, JOB_EPOCH_HISTORY_DIR, in place of the epoch history file"`
}

// block is a block schedd "<name>" { … }.
type block struct {
	Name          hcl.String   `hcl:"name,label"`
	History       hcl.Absolute `hcl:"history,optional"`
	Epochs        hcl.Absolute `hcl:"epochs,optional"`
	Rotated       hcl.Strings  `hcl:"rotated,optional"`
	RotatedEpochs hcl.Strings  `hcl:"rotated_epochs,optional"`
	JobHistories  hcl.Absolute `hcl:"job_histories,optional"`
	JobEpochs     hcl.Absolute `hcl:"job_epochs,optional"`
	Pool          string       `hcl:"pool,optional"`
}

// config is the evaluated config block.
type config struct {
	settings

	schedds []schedd
	imports []string
	facts   map[string]time.Duration // that are told, with how often at most
}

// schedd is a schedd whose jobs are read.
type schedd struct {
	name     string // as the configuration has it; "" where there is only one
	pool     string // its own; "" for that of all
	logs     [2]follow.Log
	folders  [2]string
	optional [2]bool // the file was found, not configured, and may be absent

	client *condor.Client // of a schedd that is read through commands
	waits  bool           // epochs are read, maybe from the files of another
}

// String names the schedd for people.
func (s *schedd) String() string { return strings.TrimSpace("schedd " + s.name) }

// hasEpochs reports whether the schedd's epochs are read by themselves. Those of another may
// be in any file of epochs.
func (s *schedd) hasEpochs() bool {
	return s.client != nil || s.logs[epochs].Path+s.folders[epochs] != ""
}

// hasEpochsApart reports whether name is a schedd other than at whose epochs are read by
// themselves. Schedds of one machine may write into one file.
func (c *config) hasEpochsApart(name string, at *schedd) bool {
	return at != nil && name != at.name && slices.ContainsFunc(c.schedds, func(s schedd) bool { return s.name == name && s.hasEpochs() })
}

// readUntil is when the schedd must be done with a job for its history to be read now.
func (s *schedd) readUntil(began time.Time) time.Time {
	if !s.waits {
		return time.Time{}
	}
	return began.Truncate(time.Second)
}

// explainMissing says what to do about a file that is not there.
func (s *schedd) explainMissing(err error) error {
	if s.client != nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: the schedd makes it when the first job ends; if it is elsewhere, set history, epochs, or through = \"commands\" in the source's config block", err)
}

// usualPaths are where the history usually is, by packages.
func usualPaths() []string {
	return []string{"/var/lib/condor/spool/history", "/var/spool/condor/history"}
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(ctx context.Context, cfg *sdk.Config) config {
	var c config
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.checkFilter(cfg)
	c.imports = importsOf(cfg, c.Import)
	c.readSchedds(ctx, cfg)
	waits := slices.ContainsFunc(c.schedds, func(s schedd) bool { return s.hasEpochs() })
	for i := range c.schedds {
		c.schedds[i].waits = waits
	}
	if c.Constraint != "" && slices.ContainsFunc(c.schedds, func(s schedd) bool { return s.client == nil }) {
		cfg.Errorf("constraint", "files are read without HTCondor, which alone evaluates expressions; use commands, a filter, or when in record")
	}
	c.readFacts()
	return c
}

func (c *config) newClient(name, pool string) *condor.Client {
	return &condor.Client{Dir: string(c.Commands), Config: string(c.Config), Schedd: name, Pool: cmp.Or(pool, c.Pool), Timeout: c.Timeout}
}

func (c *config) readSchedds(ctx context.Context, cfg *sdk.Config) {
	if len(c.Schedds) == 0 {
		one := schedd{}
		if c.Through == "commands" {
			one.client = c.newClient("", c.Pool)
		} else if len(c.imports) == 0 {
			c.findFiles(ctx, &one, c.settings.files)
		}
		checkPatterns(cfg.Body, c.settings.files)
		c.schedds = []schedd{one}
		return
	}
	for _, name := range []string{"history", "epochs", "rotated", "rotated_epochs", "job_histories", "job_epochs"} {
		if cfg.Has(name) {
			cfg.Errorf(name, "with schedd blocks, %s belongs into each of them", name)
		}
	}
	blocks := cfg.Blocks("schedd")
	for _, b := range c.Schedds {
		at := blocks[slices.IndexFunc(blocks, func(o *sdk.Body) bool { return slices.Equal(o.Labels(), []string{b.Name.Value}) })]
		one := schedd{name: b.Name.Value, pool: b.Pool}
		f := files{b.History, b.Epochs, b.Rotated, b.RotatedEpochs, b.JobHistories, b.JobEpochs}
		checkPatterns(at, f)
		if b.History == "" && b.JobHistories == "" {
			one.client = c.newClient(one.name, one.pool)
		} else {
			c.findFiles(ctx, &one, f)
		}
		c.schedds = append(c.schedds, one)
	}
}

// findFiles sets where the files of a schedd are. What is not configured is asked of HTCondor,
// and looked for in the usual places.
func (c *config) findFiles(ctx context.Context, s *schedd, f files) {
	path := string(f.History)
	if path == "" && f.JobHistories == "" {
		path = c.configPath(ctx, "HISTORY")
		for _, u := range usualPaths() {
			if path == "" && fileExists(u) {
				path = u
			}
		}
		path = cmp.Or(path, usualPaths()[0])
	}
	runs := string(f.Epochs)
	if runs == "" && f.JobEpochs == "" {
		s.optional[epochs] = true
		if f.History == "" {
			runs = c.configPath(ctx, "JOB_EPOCH_HISTORY")
		}
		if beside := filepath.Join(filepath.Dir(path), "epoch_history"); runs == "" && path != "" && fileExists(beside) {
			runs = beside
		}
	}
	s.optional[history] = path != "" && f.History == "" && f.JobHistories != ""
	s.logs = [2]follow.Log{epochs: {Path: runs, More: f.RotatedEpochs, Banner: classad.Banner}, history: {Path: path, More: f.Rotated, Banner: classad.Banner}}
	s.folders = [2]string{epochs: string(f.JobEpochs), history: string(f.JobHistories)}
}

// configPath is an absolute path that HTCondor's configuration has; "" where it has none or
// cannot be asked.
func (c *config) configPath(ctx context.Context, name string) string {
	path, err := c.newClient("", "").Value(ctx, name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// importsOf are the files to import, epochs first: the history has the last word on a run.
func importsOf(cfg *sdk.Config, patterns []string) []string {
	all := follow.ImportedFiles(cfg, patterns)
	slices.SortStableFunc(all, func(a, b string) int { return fileRank(a) - fileRank(b) })
	return all
}

// fileRank is 0 of a file of epochs, 1 of others.
func fileRank(path string) int {
	if base := filepath.Base(path); strings.Contains(base, "epoch") || strings.Contains(base, ".runs.") {
		return 0
	}
	return 1
}

func checkPatterns(b *sdk.Body, f files) {
	follow.CheckPatterns(b, "rotated", f.Rotated)
	follow.CheckPatterns(b, "rotated_epochs", f.RotatedEpochs)
}

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	Universes hcl.Strings `hcl:"universes,optional" default:"[\"vanilla\", \"parallel\", \"java\", \"vm\", \"standard\", \"mpi\"]" doc:"only runs of these universes. scheduler, which DAGMan is in, and local run on the machine of the schedd; grid elsewhere"`
	Users     hcl.Strings `hcl:"users,optional" unset:"all" doc:"only runs of these users (Owner)"`
	Groups    hcl.Strings `hcl:"groups,optional" unset:"all" doc:"only runs of these groups, as job.group has them"`
	Projects  hcl.Strings `hcl:"projects,optional" unset:"all" doc:"only runs of these projects (ProjectName)"`
	States    hcl.Strings `hcl:"states,optional" unset:"all" doc:"only runs that ended so, as job.state has it"`
}

func (f *filter) checkFilter(cfg *sdk.Config) {
	for i := range f.States {
		f.States[i] = strings.ToUpper(f.States[i])
	}
	for _, l := range []struct {
		name         string
		given, known []string
	}{{"states", f.States, job.States()}, {"universes", f.Universes, job.Universes()}} {
		for i, s := range l.given {
			if slices.Contains(l.known, s) {
				continue
			}
			hint := "known are " + strings.Join(l.known, ", ")
			if near := hcl.Suggest(s, l.known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			cfg.ElementErrorf(l.name, i, "%q is not known; %s", s, hint)
		}
	}
}

func (f *filter) wantsJob(j *job.Job) bool {
	return f.wantsQueued(j) && (len(f.States) == 0 || slices.Contains(f.States, j.State()))
}

// wantsQueued reports whether the runs of a job in the queue are wanted, however they end.
func (f *filter) wantsQueued(j *job.Job) bool {
	return (len(f.Universes) == 0 || slices.Contains(f.Universes, j.UniverseName())) && (len(f.Users) == 0 || slices.Contains(f.Users, j.Owner)) &&
		(len(f.Groups) == 0 || slices.Contains(f.Groups, j.Group())) && (len(f.Projects) == 0 || slices.Contains(f.Projects, j.Project()))
}
