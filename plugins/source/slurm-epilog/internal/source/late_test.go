package source

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

// ofSlurmd is an epilog as slurmd runs it: it does not know places in arrays.
func ofSlurmd(start int64) func(*event.Event) {
	return func(e *event.Event) {
		one, none := int64(1), int64(0)
		e.Context, e.Start, e.Exit, e.User, e.CPUs, e.Restarts = event.OfNode, start, "0:0", "alice", &one, &none
	}
}

func TestARunThatSlurmdbdHasUnderABetterNameLaterIsOneRecord(t *testing.T) {
	for name, later := range map[string]time.Duration{"hours": 3 * time.Hour, "days": 10 * 24 * time.Hour} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " restart ", restart), func(t *testing.T) {
				run(t, func(s *site) {
					submit, start, end := at(-100), at(-50), at(0)
					s.tell(11, ofSlurmd(time.Now().Unix()-50))
					s.wait(2 * time.Hour)
					s.want("11")
					before := s.checkpoint
					s.wait(later - 2*time.Hour)
					s.want()
					if name == "days" && string(before) == string(s.checkpoint) {
						t.Error("the checkpoint stands still")
					}
					if restart {
						s.restart()
					}
					s.job("11", "COMPLETED", submit, start, end, "JobID", "5_1")
					s.wait(3 * time.Hour)
					s.want("5_1")
					if diff := cmp.Diff([]string{"5_1"}, slices.Collect(maps.Keys(s.jobs))); diff != "" {
						t.Error(diff)
					}
					questions := len(s.db.questions())
					s.wait(24 * time.Hour)
					if n := len(s.db.questions()); n != questions {
						t.Errorf("sacct was asked %d times more", n-questions)
					}
				})
			})
		}
	}
}

func TestWhatWasQuarantinedIsSettledWhenSlurmdbdHasIt(t *testing.T) {
	for _, id := range []string{"7", "5_1"} {
		run(t, func(s *site) {
			submit, start, end := at(-100), at(-50), at(0)
			s.tell(7, func(e *event.Event) { e.Context = event.OfNode })
			s.wait(2 * time.Hour)
			s.want()
			if s.refused["7"].Message == "" {
				t.Fatal(s.refused)
			}
			s.restart()
			s.job("7", "COMPLETED", submit, start, end, "JobID", id)
			s.wait(3 * time.Hour)
			s.want(id)
			if len(s.refused) > 0 {
				t.Error(s.refused)
			}
		})
	}
}

// The end that was taken from an epilog is replaced by slurmdbd's, also when both are
// of the same second.
func TestTheLastWordIsSlurmdbds(t *testing.T) {
	run(t, func(s *site) {
		submit, start, end := at(-100), at(-50), at(0)
		s.job("7", "RUNNING", submit, start, "Unknown")
		s.tell(7)
		s.wait(2 * time.Hour)
		s.want("7")
		s.job("7", "COMPLETED", submit, start, end)
		s.wait(2 * time.Hour)
		s.want("7")
		if state := s.value("7", "state").Str(); state != "COMPLETED" {
			t.Error(state)
		}
	})
}

func TestARunThatEndedLongBeforeItsEpilogIsSent(t *testing.T) {
	for name, change := range map[string]func(*event.Event){"without a start": func(*event.Event) {}, "with its start": ofSlurmd(0)} {
		t.Run(name, func(t *testing.T) {
			run(t, func(s *site) {
				start := time.Now().Add(-73 * time.Hour).Unix()
				s.job("7", "NODE_FAIL", at(-80*3600), strconv.FormatInt(start, 10), at(-72*3600))
				s.tell(7, change, func(e *event.Event) {
					if e.Start = 0; name == "with its start" {
						e.Start = start
					}
				})
				s.wait(2 * time.Hour)
				s.want("7")
				if len(s.refused) > 0 {
					t.Error(s.refused)
				}
			})
		})
	}
}

// slurmdbd has a job of the same number from years ago.
func TestAnEarlierRunOfTheNumberIsNotTakenForTheEpilogs(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-400*86400), at(-400*86400), at(-399*86400))
		now := time.Now().Unix()
		s.tell(7, ofSlurmd(now-50))
		s.wait(30 * time.Minute)
		s.want("7") // which is true
		submit := strconv.FormatInt(now-60, 10)
		s.job("7", "COMPLETED", submit, strconv.FormatInt(now-50, 10), strconv.FormatInt(now, 10))
		s.wait(time.Hour)
		s.want("7-" + submit)
	})
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-400*86400), at(-400*86400), at(-399*86400))
		now := time.Now().Unix()
		s.tell(7, ofSlurmd(now-50))
		s.wait(2 * time.Hour)
		s.want("7")
		if !strings.Contains(s.refused["7"].Message, "only an earlier run") {
			t.Error(s.refused)
		}
		submit := strconv.FormatInt(now-60, 10)
		s.job("7", "COMPLETED", submit, strconv.FormatInt(now-50, 10), strconv.FormatInt(now, 10))
		s.wait(2 * time.Hour)
		slices.Sort(s.sent)
		s.want("7", "7-"+submit)
		if len(s.jobs) != 2 || len(s.refused) > 0 {
			t.Error(s.jobs, s.refused)
		}
	})
}

func TestAPrologMakesNothing(t *testing.T) {
	run(t, func(s *site) {
		for i, c := range []string{"prolog_slurmd", "prolog_slurmctld", "prolog_task", "epilog_task", "prolog_srun", "epilog_srun"} {
			s.tell(int64(7+i), ofSlurmd(time.Now().Unix()-5), func(e *event.Event) { e.Context = c })
			e := event.Event{ID: fmt.Sprintf("%031x0", i), At: time.Now().UnixMicro(), Job: 99, Context: c}
			if err := s.source.acceptEvent(e); err != nil {
				t.Error(err)
			}
		}
		s.restart()
		s.wait(3 * time.Hour)
		s.want()
		if len(s.refused) > 0 || len(s.db.questions()) > 0 {
			t.Error(s.refused, s.db.questions())
		}
	})
}

// Whatever slurmdbd hears when, by whichever epilog, and however often the plugin dies:
// in the end each run is one job by its true name, and nothing is in quarantine.
func TestWhateverSlurmdbdLacksForHoweverLongEachRunIsOneJob(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run(t, func(s *site) {
				chance := rand.New(rand.NewPCG(seed, 3))
				truth := map[string]bool{}
				var put []func()
				for n := range 12 {
					raw := strconv.Itoa(11 + n)
					id := []string{raw, fmt.Sprintf("5_%d", n), fmt.Sprintf("6+%d", n)}[chance.IntN(3)]
					truth[id] = true
					now := time.Now().Unix()
					start := now - 50
					submit, begin, end := at(-100), strconv.FormatInt(start, 10), at(0)
					change := []func(*event.Event){ofSlurmd(start), ofSlurmd(0), func(e *event.Event) { e.Start = start }}
					for range 1 + chance.IntN(3) {
						s.tell(int64(11+n), change[chance.IntN(len(change))])
					}
					half := chance.IntN(4) == 0
					put = append(put, func() {
						if half {
							half = false
							s.job(raw, "COMPLETED", submit, begin, end, "Partition", "", "JobName", "allocation")
							return
						}
						s.job(raw, "COMPLETED", submit, begin, end, "JobID", id)
					})
					s.wait(time.Duration(chance.IntN(40)) * time.Minute)
				}
				chance.Shuffle(len(put), func(a, b int) { put[a], put[b] = put[b], put[a] })
				for _, p := range append(put, put...) {
					p()
					if chance.IntN(3) == 0 {
						s.restart()
					}
					s.wait(time.Duration(chance.IntN(200)) * time.Minute)
				}
				s.wait(24 * time.Hour)
				if diff := cmp.Diff(slices.Sorted(maps.Keys(truth)), slices.Sorted(maps.Keys(s.jobs))); diff != "" {
					t.Errorf("(-truth +told)\n%s", diff)
				}
				if len(s.refused) > 0 {
					t.Errorf("still refused: %v", slices.Collect(maps.Values(s.refused)))
				}
			})
		})
	}
}

// A window that is collected again has runs whose epilogs ran long after it.
func TestAWindowHasRunsWhoseEpilogsRanLongAfterIt(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "NODE_FAIL", at(-80*3600), at(-73*3600), at(-72*3600))
		s.tell(7)
		s.wait(2 * time.Hour)
		s.want("7")
		end := time.Now().Add(-2 * time.Hour)
		if err := s.collect(time.Minute, sdk.Start{Window: &sdk.Window{From: end.Add(-73 * time.Hour), To: end.Add(-71 * time.Hour)}}); err != nil {
			t.Fatal(err)
		}
		s.want("7")
	})
}
