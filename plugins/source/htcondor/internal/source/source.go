package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/job"
)

// Version is that of the plugin.
const Version = "1.0.0"

// Mapping is the default mapping.
const Mapping = `id          = "${source.label}-${job.id}"
start       = job.start_time
stop        = job.end_time
submit      = job.QDate
state       = job.state
exit_code   = job.exit_code
exit_signal = job.exit_signal
meta = {
  site_id      = source.label
  user_id      = job.Owner
  group_id     = job.group
  vo           = job.vo
  schedd       = job.schedd
  project      = job.ProjectName
  host         = job.host
  job_name     = job.JobBatchName
  glidein_site = job.glidein_site
  gpu_model    = job.gpu_device
}
component "Cores" {
  amount = job.cores
}
component "Memory" {
  amount = job.memory_mb
  when   = job.memory_mb != null
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
component "GPUs:*" { # of the device, as in the capacity
  amounts = { (job.gpu_device) = job.gpus }
  when    = job.gpu_device != null && try(job.gpus > 0, false)
}
component "MilliGPUs" { # of runs with slices of cards (MIG); 1000 for a whole card
  amount = job.milli_gpus
  when   = try(job.partial_gpus && job.milli_gpus > 0, false)
}
component "Disk" {
  amount = ceil(coalesce(job.disk_kb, 0) / 1024)
  when   = try(job.disk_kb > 0, false)
}
component "TotalCPU" {
  amount = job.cpu_seconds
  kind   = "total"
  when   = job.cpu_seconds != null
}
component "MemoryUsed" { # the peak
  amount = ceil(job.max_rss_bytes / 1048576)
  when   = job.max_rss_bytes != null
}
`

// Source is the HTCondor source. New makes it.
type Source struct {
	config config
	plan   *job.Plan
	now    func() time.Time
	log    *slog.Logger
	batch  int // runs in a batch
	names  int // files of folders that a checkpoint names

	// What follows only saves work or words, and may be lost.
	facts *teller
	noted map[string]bool // files that were said to be unreadable
}

// New makes a source that logs to log.
func New(log *slog.Logger) *Source {
	return &Source{now: time.Now, log: log, batch: batchRuns, names: mostNames, noted: map[string]bool{}}
}

// Describe says what the source is.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "htcondor", Version: Version, Rank: sdk.RankScheduler, Interval: time.Minute,
		Attributes: job.Attributes(), Mapping: Mapping, Settings: new(settings),
	}
}

// Configure takes the config block; see the README for its keys.
func (s *Source) Configure(ctx context.Context, cfg *sdk.Config) error {
	s.config = readConfig(ctx, cfg)
	s.plan = job.NewPlan(cfg.Wants)
	s.facts = newTeller(&s.config, s.now, s.log)
	return cfg.Err()
}

// Collect sends what has come since from.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	c, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	p := &pass{Source: s, checkpoint: c, began: s.now().UTC(), said: newRuns(), run: job.New(), values: s.plan.Lend()}
	p.Pass = follow.Pass{Out: out, Log: s.log, Noted: s.noted, Skipped: map[error]int64{}, Emptied: p.values.TakeBack,
		Most: follow.Most{Runs: s.batch, Bytes: batchBytes, Entries: batchEntries}}
	defer p.tellSkipped()
	switch {
	case len(s.config.imports) > 0:
		return p.importFiles(ctx, from)
	case from.Window != nil:
		return p.forEachSchedd(ctx, func(at *schedd) error {
			return errors.Join(p.resendWindow(ctx, at, from.Window.From, from.Window.Holds), p.sendOpenRuns(ctx, at, from.Window.Holds))
		})
	}
	if from.Rewind > 0 {
		if err := p.forEachSchedd(ctx, func(at *schedd) error { return p.rewindSchedd(ctx, at, from.Rewind) }); err != nil {
			return err
		}
	}
	err = p.followSchedds(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, p.finishPass(ctx, err == nil, from.Rewind > 0))
}

// forEachSchedd does one thing for all schedds, also where it fails for some.
func (p *pass) forEachSchedd(ctx context.Context, do func(*schedd) error) error {
	var failed []error
	for i := range p.config.schedds {
		at := &p.config.schedds[i]
		if err := do(at); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", at, at.explainMissing(err)))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failed...)
}
