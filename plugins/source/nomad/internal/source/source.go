package source

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// Version is that of the plugin.
const Version = "1.0.0"

// Mapping is the default mapping.
const Mapping = `id          = "${source.label}-${job.id}"
start       = job.start
stop        = job.stop
submit      = job.submit
state       = job.state
exit_code   = job.exit_code
exit_signal = job.exit_signal
meta = {
  site_id     = source.label
  user_id     = job.owner
  group_id    = job.namespace
  namespace   = job.namespace
  job         = job.job_name
  job_name    = job.job_name # the key that all schedulers have
  task        = job.task
  node        = job.node
  node_pool   = job.node_pool
  datacenter  = job.datacenter
  gpu_model   = job.gpu_model
  estimated   = job.estimated ? "true" : null
  run_part    = job.lifecycle # not counted as a job
}
component "Cores" {
  amount = job.cores
  when   = try(job.cores > 0, false)
}
component "MHz" {
  amount = job.cpu_mhz
  when   = job.cpu_mhz != null
}
component "Memory" {
  amount = job.memory_mb
  when   = job.memory_mb != null
}
component "Disk" {
  amount = job.disk_mb
  when   = try(job.disk_mb > 0, false)
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
component "GPUs:*" { # of each model, as in the capacity
  amounts = job.gpus_by_model
}
component "MilliGPUs" { # of tasks with slices of cards (MIG); 1000 for a whole card
  amount = job.milli_gpus
  when   = try(job.partial_gpus && job.milli_gpus > 0, false)
}
`

// server is what a Source needs of Nomad.
type server interface {
	Allocations(ctx context.Context, yield func([]*nomad.Allocation) error) (uint64, error)
	Allocation(ctx context.Context, namespace, id string) (*nomad.Allocation, error)
	Jobs(ctx context.Context, yield func([]*nomad.JobStub) error) error
	Job(ctx context.Context, namespace, id string) (*nomad.Job, error)
	Nodes(ctx context.Context) ([]nomad.Node, error)
	Follow(ctx context.Context, index uint64) *nomad.Feed
}

// Source is the Nomad source. New makes it.
type Source struct {
	config config
	wants  func(string) bool
	dir    string
	nomad  server
	now    func() time.Time
	log    *slog.Logger

	oneLook bool // Collect ends after a listing, for tests

	// What follows only saves work.
	jobs  *jobs
	facts facts.Schedule
}

// New makes a source that logs to log.
func New(log *slog.Logger) *Source {
	return &Source{now: time.Now, log: log, jobs: newJobs()}
}

// Describe says what the source is.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "nomad", Version: Version, Rank: sdk.RankScheduler, Push: true, Interval: time.Minute,
		Attributes: run.Attributes(), Mapping: Mapping, Settings: new(settings),
	}
}

// Configure takes the config block; see the README for its keys.
func (s *Source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.config = readConfig(cfg)
	s.wants, s.dir = cfg.Wants, cfg.DataDir
	client := nomad.NewClient(s.config.server)
	s.nomad = client
	if err := client.Ready(); err != nil { // files that may be written later
		name, files := "token_file", s.config.server.Files
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			name = cmp.Or(map[string]string{files.CA: "ca", files.Cert: "cert", files.Key: "key"}[at.Path], name)
		}
		cfg.Warnf(name, "Nomad cannot be asked yet: %s", hcl.FileError(err))
	}
	return cfg.Err()
}
