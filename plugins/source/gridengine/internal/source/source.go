package source

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/accounting"
)

// Version is that of the plugin.
const Version = "1.0.0"

// Mapping is the default mapping.
const Mapping = `id          = "${source.label}-${job.qualified_id}"
start       = job.start_time
stop        = job.end_time
submit      = job.submission_time
state       = job.state
exit_code   = job.exit_status
exit_signal = job.exit_signal
meta = {
  site_id    = source.label
  user_id    = job.owner
  group_id   = job.group
  account    = job.account
  partition  = job.qname
  cluster    = job.cell
  project    = job.project
  department = job.department
  job_name   = job.job_name
  host       = job.hostname
  pe         = job.granted_pe
  gpu_model  = job.gpu_model
  run_part   = job.slave ? "slave" : null # not counted as a job
}

# The line of a slave task has none: its slots are in the line of its job.
component "Cores" {
  amount = job.cores
  when   = !job.slave
}
component "Memory" {
  amount = job.memory_mb
  when   = job.memory_mb != null
}
component "GPUs" { # by request
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
component "GPUs:*" {
  amounts = { (job.gpu_model) = job.gpus }
  when    = job.gpu_model != null
}
component "TotalCPU" {
  amount = job.cpu_seconds
  kind   = "total"
  when   = job.cpu_seconds != null
}
`

// Source is the Grid Engine source. New makes it.
type Source struct {
	config config
	plan   *accounting.Plan
	now    func() time.Time
	log    *slog.Logger
	batch  int // lines in a batch

	// What follows only saves work or words, and may be lost.
	facts *teller
	noted map[string]bool // files that were said to be unreadable
}

// New makes a source that logs to log.
func New(log *slog.Logger) *Source {
	return &Source{now: time.Now, log: log, batch: batchRuns, noted: map[string]bool{}}
}

// Describe says what the source is.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "gridengine", Version: Version, Rank: sdk.RankScheduler, Interval: time.Minute,
		Attributes: accounting.Attributes(), Mapping: Mapping, Settings: new(settings),
	}
}

// Configure takes the config block; see the README for its keys.
func (s *Source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.config = readConfig(cfg)
	s.plan = accounting.NewPlan(cfg.Wants, accounting.Site{
		Memory:    accounting.Ask{Requests: s.config.MemoryRequests, PerJob: s.config.MemoryPer == "job"},
		GPUs:      accounting.Ask{Requests: s.config.GPURequests, PerJob: s.config.GPUPer == "job", PerHost: s.config.GPUPer == "host", OneHost: s.config.OneHost},
		GPUModels: s.config.GPUModelRequests,
	})
	s.facts = newTeller(&s.config, s.now, s.log)
	return cfg.Err()
}

// Collect sends what has come since from.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	c, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	p := &pass{Source: s, checkpoint: c, began: s.now().UTC(), Pass: follow.Pass{Out: out, Log: s.log, Noted: s.noted, Skipped: map[error]int64{},
		Most: follow.Most{Runs: s.batch, Bytes: batchBytes, Entries: batchLines}}}
	defer p.tellSkipped()
	switch {
	case len(s.config.imports) > 0:
		return p.importFiles(ctx, from)
	case from.Window != nil:
		return p.resendWindow(ctx, *from.Window)
	}
	if from.Rewind > 0 {
		if err := p.rewindCells(ctx, from.Rewind); err != nil {
			return err
		}
	}
	var failed []error
	for i := range s.config.cells {
		err := p.followCell(ctx, &s.config.cells[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, s.config.cells[i].explainMissing(err))
		}
	}
	return errors.Join(append(failed, p.finishPass(ctx, len(failed) == 0, from.Rewind > 0))...)
}
