package source

import (
	"context"
	"log/slog"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/history"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// Version is that of the plugin.
const Version = "1.0.0"

// asker is what a Source needs of sacct.
type asker interface {
	Columns(ctx context.Context) ([]string, error)
	Rows(ctx context.Context, q sacct.Query, yield func(sacct.Row) error) error
}

// knower is what a Source needs of the cluster.
type knower interface {
	Nodes(ctx context.Context) ([]cluster.Node, error)
	Jobs(ctx context.Context, yield func(cluster.Job)) error
	Associations(ctx context.Context) ([]cluster.Association, error)
	Names(ctx context.Context, users []string) (map[string]string, error)
}

// Source is the Slurm source. New makes it.
type Source struct {
	config config
	wants  func(string) bool
	sacct  asker
	slurm  knower
	now    func() time.Time
	log    *slog.Logger

	// What follows only saves work or looks further back, and may be lost.
	history history.History
	open    map[job.Key]openRun   // runs that went on at the last look
	half    map[job.Key]halfRun   // runs that were sent while slurmdbd had only half of them
	halved  time.Time             // when those were asked for by id last
	missing map[job.Key]time.Time // runs that went on and that sacct no longer knows, since when
	counted map[job.Key]time.Time // jobs that never started and were counted, with their end
	refused map[refusal]bool      // rows that were refused
	swept   time.Time             // the last look by deepOverlap
	width   time.Duration         // of the next window
	facts   facts.Schedule
	looked  lookedAt // at the nodes, for parts of cards
}

// New makes a source that logs to log.
func New(log *slog.Logger) *Source {
	return &Source{now: time.Now, log: log,
		open: map[job.Key]openRun{}, half: map[job.Key]halfRun{}, missing: map[job.Key]time.Time{}, counted: map[job.Key]time.Time{},
		refused: map[refusal]bool{}}
}

// Describe says what the source is.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "slurm", Version: Version, Rank: sdk.RankScheduler, ReusesIDs: true, Interval: time.Minute,
		Attributes: job.Attributes(), Mapping: job.Mapping, Settings: new(settings),
	}
}

// Configure takes the config block; see the README for its keys.
func (s *Source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.config = readConfig(cfg)
	s.wants = cfg.Wants
	s.sacct, s.slurm = s.config.Client(), s.config.newClient()
	s.width = s.config.Window
	return cfg.Err()
}
