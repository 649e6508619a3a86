package source

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/condor"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/job"
	"github.com/bursar-accounting/bursar/proto/record"
)

// readFacts reads what is told beside runs. Without commands, nothing is.
func (c *config) readFacts() {
	c.facts = map[string]time.Duration{}
	if len(c.imports) > 0 || !isProgram(filepath.Join(string(c.Commands), "condor_status")) {
		return
	}
	if c.Capacity {
		c.facts[facts.Capacity] = c.CapacityInterval
	}
	if c.Census {
		c.facts[facts.Census] = c.CensusInterval
	}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// queueClient is the client that asks for the queue of a schedd.
func (c *config) queueClient(at *schedd) *condor.Client {
	return cmp.Or(at.client, c.newClient(at.name, at.pool))
}

// teller tells the facts, and remembers what saves work or words.
type teller struct {
	config *config
	now    func() time.Time
	log    *slog.Logger

	facts.Schedule
}

func newTeller(c *config, now func() time.Time, log *slog.Logger) *teller {
	return &teller{config: c, now: now, log: log}
}

// sendFacts sends the facts that are due, after the runs: what is wrong with them never holds
// up a record. With renew it sends also what was sent before, because the daemon has
// lost it.
func (t *teller) sendFacts(ctx context.Context, p *pass, renew bool) error {
	if renew {
		p.checkpoint.Told = facts.Told{}
	}
	before := p.checkpoint.Told
	with := facts.Settings{Every: t.config.facts, Now: t.now, Log: t.log, Remedy: factRemedy}
	var b sdk.Batch
	as := func(ask func(context.Context, *sdk.Batch, *facts.Told) error) func(context.Context) error {
		return func(ctx context.Context) error { return ask(ctx, &b, &p.checkpoint.Told) }
	}
	list := []facts.Fact{{Name: facts.Capacity, Ask: as(t.tellCapacity)}, {Name: facts.Census, Ask: as(t.tellCensus)}}
	return t.Tell(ctx, with, renew, list, func() error {
		if p.checkpoint.Told != before {
			b.Checkpoint = p.checkpoint.encodeVersioned()
		} else if b.Census == nil {
			return nil
		}
		return p.Out.Send(ctx, b)
	})
}

// factRemedy says what to do about a fact that cannot be had.
func factRemedy(name string) string {
	return "make the command work for this user, or set " + name + " = false in the source's config block"
}

// tellCapacity tells what the pools have when that has changed.
func (t *teller) tellCapacity(ctx context.Context, b *sdk.Batch, told *facts.Told) error {
	pools := map[string]*condor.Client{}
	for i := range t.config.schedds {
		client := t.config.queueClient(&t.config.schedds[i])
		pools[client.Pool] = client
	}
	totals, parts := map[string]int64{}, new(big.Rat)
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		slots, err := pools[pool].Slots(ctx)
		if err != nil {
			return err
		}
		for _, s := range slots {
			totals["Cores"] += s.Cpus
			totals["Memory"] += s.Memory
			if s.GPUs > 0 {
				totals["GPUs"] += s.GPUs
				if model := "GPUs:" + s.Device; s.Device != "" && record.ValidateName(model) == "" {
					totals[model] += s.GPUs
				}
				if profile, model, slice := mig.Profile(s.Device); slice {
					if part, err := mig.Share(profile, model); err == nil { // else runs there have none
						parts.Add(parts, part.Mul(part, big.NewRat(s.GPUs, 1)))
					}
				}
			}
		}
	}
	if n, err := mig.Thousandths(parts); err == nil && n > 0 {
		totals["MilliGPUs"] = n
	}
	if list := facts.Amounts(totals); len(list) > 0 {
		b.Capacity = told.News(t.now(), list)
	}
	return nil
}

// tellCensus tells how many jobs run and wait now of those whose runs are wanted, by user and schedd.
func (t *teller) tellCensus(ctx context.Context, b *sdk.Batch, _ *facts.Told) error {
	at, counts := t.now(), facts.Counts{}
	queued := job.New()
	for i := range t.config.schedds {
		s := &t.config.schedds[i]
		err := t.config.queueClient(s).Jobs(ctx, job.FilterAttributes(), func(ad *classad.Ad, running bool) {
			_ = queued.Load(ad, false) // the error: these attributes alone do not make a run
			place := facts.Place{User: strings.Clone(queued.Owner), Queue: s.name}
			switch {
			case !t.config.wantsQueued(queued):
			case running:
				counts.Add(place, 1, 0)
			default:
				counts.Add(place, 0, 1)
			}
		})
		if err != nil {
			return err
		}
	}
	rows, err := counts.Rows(facts.Most)
	b.Census = &sdk.Census{At: at, Rows: rows}
	return err
}

// active is true for jobs that run.
const active = "JobStatus == 2 || JobStatus == 6 || JobStatus == 7"

// sendOpenRuns sends the runs that go on and that keep wants, where they are to be sent.
func (p *pass) sendOpenRuns(ctx context.Context, at *schedd, keep func(start time.Time) bool) error {
	if !p.config.Open {
		return nil
	}
	p.Begin()
	r := new(reading)
	err := p.config.queueClient(at).Queue(ctx, active, nil, func(ad *classad.Ad, raw []byte, err error) error {
		// What cannot be read is refused when it has ended.
		if err == nil && p.goesOn(ad) && keep(p.run.Start) {
			p.Took(0)
			p.addAs(p.run.ID(), string(raw), r, false)
		}
		if !p.Full() {
			return nil
		}
		err = p.Send(ctx, &r.Reading, nil)
		p.Begin()
		return err
	})
	if err != nil {
		return err
	}
	return p.Send(ctx, &r.Reading, nil)
}

// goesOn reports whether the ad is of a run that has begun and not ended.
func (p *pass) goesOn(ad *classad.Ad) bool {
	p.ad = *ad
	return p.run.Load(&p.ad, false) == nil && p.run.End.IsZero()
}

// finishPass sends the facts and the watermark.
func (p *pass) finishPass(ctx context.Context, complete, renew bool) error {
	if err := p.facts.sendFacts(ctx, p, renew); err != nil {
		return err
	}
	// While the schedd does not answer, runs end that it writes later.
	if !complete || p.facts.Failed(facts.Census) {
		return nil
	}
	return p.Out.Send(ctx, sdk.Batch{Watermark: p.began.Add(-p.config.Lag), CompleteFrom: p.config.Earliest.Time})
}
