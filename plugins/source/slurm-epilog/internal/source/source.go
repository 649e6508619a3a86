package source

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/history"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/intake"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/journal"
)

// Version is that of the plugin.
const Version = "1.0.0"

// asker is what a Source needs of sacct.
type asker interface {
	Columns(ctx context.Context) ([]string, error)
	Rows(ctx context.Context, q sacct.Query, yield func(sacct.Row) error) error
}

// Source is the source of epilogs. New makes it.
type Source struct {
	config config
	wants  func(string) bool
	sacct  asker
	now    func() time.Time
	log    *slog.Logger
	most   int // events in one question to sacct

	opening sync.Mutex       // guards journal and intake while they are opened and closed
	journal *journal.Journal // nil until the first Collect
	intake  *intake.Intake
	pending *pending

	// What follows only saves work, and may be lost.
	history history.History
	resumed bool
	at      []byte            // the checkpoint behind which pending is, once resumed
	sent    map[job.Key]int64 // runs that were sent, with their end
	refused map[refusal]bool  // rows that were refused
}

// refusal is what was refused and why.
type refusal struct{ run, message string }

// New makes a source that logs to log.
func New(log *slog.Logger) *Source {
	return &Source{now: time.Now, log: log, most: maxAsk, pending: newPending()}
}

// Describe says what the source is.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "slurm-epilog", Version: Version, Rank: sdk.RankEpilog, ReusesIDs: true, Push: true, Interval: 10 * time.Second,
		Attributes: job.Attributes(), Mapping: job.Mapping, Settings: new(settings),
	}
}

// Configure takes the config block; see the README for its keys.
func (s *Source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.config = readConfig(cfg, os.Geteuid())
	s.wants = cfg.Wants
	s.sacct = s.config.Client()
	s.pending.toldPause = min(toldPause, s.config.Wait)
	return cfg.Err()
}

// openJournal opens the journal and then the ways in. They stay open from the first Collect
// on, also while none is going on: an epilog need not wait for one.
func (s *Source) openJournal(ctx context.Context) (err error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.intake != nil {
		return nil
	}
	if s.journal == nil {
		s.journal, err = journal.Open(ctx, journal.Options{Dir: s.config.dir, Log: s.log, Keep: s.config.Keep, Committed: s.noteCommitted})
		if err != nil {
			return err
		}
	}
	in := intake.New(s.acceptEvent, s.log)
	if err := s.listenForEvents(ctx, in); err != nil {
		in.Close()
		return err
	}
	s.intake = in
	return nil
}

func (s *Source) listenForEvents(ctx context.Context, in *intake.Intake) error {
	if s.config.Socket != "" {
		l, err := intake.Listen(string(s.config.Socket))
		if err != nil {
			return err
		}
		in.Serve(l, intake.Local{UIDs: s.config.uids})
	}
	if s.config.Listen == "" {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen for epilogs of other machines: %w", err)
	}
	in.Serve(l, intake.Remote{Keys: s.config.keys, Names: s.config.ListenClients})
	return nil
}

// maxPending bounds the events in memory that wait for sacct.
const maxPending = 200_000

// acceptEvent returns when the event is on disk.
func (s *Source) acceptEvent(e event.Event) error {
	if !e.OfEnd() {
		s.log.Warn("bursar-epilog was called where no job ends; nothing is made of it", "context", e.Context, "job", e.Job, "host", e.Host)
		return nil
	}
	e.Told, e.Since = "", 0 // which only the journal says
	if n, _ := s.pending.countWaiting(); n >= maxPending {
		return fmt.Errorf("%d epilogs wait for what slurmdbd says of their jobs; more are taken when it answers", n)
	}
	return s.journal.Append(e)
}

func (s *Source) noteCommitted(entries []journal.Entry) {
	s.pending.addEntries(entries, s.now().Add(s.config.Delay))
}

// Close ends what the first Collect began.
func (s *Source) Close() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.intake != nil {
		s.intake.Close()
	}
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}
