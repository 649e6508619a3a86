package health

import (
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

var (
	slurm = record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	push  = record.Origin{Agent: "head1", Type: "receiver", Label: "r"}
	t0    = record.FromStd(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
)

// site speaks for two sources: one with a watermark, one without.
type site struct {
	Learner

	now       record.Time
	watermark record.Time
	pulled    int64
}

func (s *site) look() {
	s.Look(s.now, []store.Cursor{{Agent: "head1", Pulled: s.now, Checkpoints: []store.Checkpoint{{Source: push}},
		Watermarks: []store.Watermark{{Source: slurm, CompleteTo: s.watermark}}}}, []store.SourceCounts{{Source: push, Counts: store.Counts{Pulled: s.pulled}}})
}

// run speaks by the watermark every so often, for a while.
func (s *site) run(every, long record.Time) {
	for end := s.now + long; s.now < end; s.now += every {
		s.watermark = s.now
		s.look()
	}
}

func TestASourceIsSilentAfterALongerPauseThanIsUsualForIt(t *testing.T) {
	s := &site{now: t0}
	s.run(record.Minute, record.Minute)
	if got := s.Allowed(slurm); got != DefaultSilence {
		t.Errorf("before anything is learnt: %d", got)
	}
	s.run(record.Minute, record.Day)
	if got := s.Allowed(slurm); got != least {
		t.Errorf("with a pause of a minute: %d", got)
	}
	if got := s.Silent(s.now + 3*record.Minute); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := s.Silent(s.now + 6*record.Minute); len(got) != 1 || got[0].Source != slurm || got[0].Since != s.now-record.Minute {
		t.Errorf("%+v", got)
	}
	slow := &site{now: t0}
	slow.run(6*record.Hour, 10*record.Day)
	if got := slow.Silent(slow.now + 2*record.Hour); slices.ContainsFunc(got, func(x Silence) bool { return x.Source == slurm }) {
		t.Errorf("a source that speaks each six hours: %+v", got)
	}
}

func TestOneOutageIsNoHabit(t *testing.T) {
	s := &site{now: t0}
	s.run(record.Minute, 3*record.Day)
	s.now += 30 * record.Hour
	s.run(record.Minute, record.Hour)
	if got := s.Allowed(slurm); got != least {
		t.Errorf("allowed %d", got)
	}
	s.now += 20 * record.Hour // and again
	s.run(record.Minute, 2*record.Day)
	if got := s.Allowed(slurm); got < 20*record.Hour {
		t.Errorf("allowed %d", got)
	}
	s.run(record.Minute, (days+2)*record.Day)
	if got := s.Allowed(slurm); got != least {
		t.Errorf("two weeks later: %d", got)
	}
}

func TestASourceWithoutAWatermarkSpeaksByWhatComesOfIt(t *testing.T) {
	s := &site{now: t0, watermark: t0}
	for range 20 {
		s.look()
		s.now, s.pulled = s.now+10*record.Minute, s.pulled+1
	}
	if got := s.Allowed(push); got != 16*record.Minute {
		t.Errorf("allowed %d", got/record.Minute)
	}
	for range 5 {
		s.look()
		s.now += 10 * record.Minute
	}
	if got := s.Silent(s.now); len(got) != 2 || got[0].Source != push {
		t.Errorf("%+v", got)
	}
}
