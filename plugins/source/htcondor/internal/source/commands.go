package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/condor"
)

// mark is the newest ad of a kind that condor_history gave.
type mark struct {
	Job string `json:"job"`          // GlobalJobId
	At  int64  `json:"at,omitempty"` // of an epoch, EpochWriteDate
}

// adExpression is true for the ad alone.
func (m *mark) adExpression() string {
	text := "GlobalJobId =?= " + quoteString(m.Job)
	if m.At != 0 {
		text += fmt.Sprintf(" && EpochWriteDate =?= %d", m.At)
	}
	return text
}

// askFor sends what condor_history has since the mark, the newest first. Only when all is
// sent does the checkpoint move: what is asked for again is known to the daemon.
func (p *pass) askFor(ctx context.Context, at *schedd, of kind) error {
	reach := p.checkpoint.Schedds[at.name]
	r := p.newReading(at, of, &reach)
	q := condor.Query{Epochs: of == epochs, Constraints: p.config.constraintList()}
	if last := reach.markOf(of); last != nil {
		q.Since = last.adExpression()
		gap, err := p.lostGap(ctx, at, q, reach.Last())
		if err != nil {
			return p.withoutEpochs(of, err)
		}
		r.Gap = gap
	}
	var newest *mark
	err := p.pullHistory(ctx, at, q, r, func(v verdict) {
		switch {
		case v == nextPass:
			newest = nil // those before, which are newer, are asked for again with it
		case newest == nil:
			newest = &mark{Job: p.run.GlobalID, At: p.run.Written()}
		}
	})
	if err != nil || newest == nil {
		return p.withoutEpochs(of, err)
	}
	reach.setMark(of, newest)
	p.checkpoint = p.checkpoint.withReach(at.name, reach)
	return p.Out.Send(ctx, sdk.Batch{Checkpoint: p.checkpoint.encodeVersioned()})
}

// withoutEpochs is nil for the error of a pool that writes no epochs.
func (p *pass) withoutEpochs(of kind, err error) error {
	if of == epochs && errors.Is(err, condor.ErrNoEpochs) {
		return nil
	}
	return err
}

// lostGap is a gap where the newest ad that was read is not in the history any more.
func (p *pass) lostGap(ctx context.Context, at *schedd, q condor.Query, last time.Time) (*sdk.Gap, error) {
	there := false
	q.Constraints, q.Since, q.Limit = []string{q.Since}, "", 1
	err := at.client.History(ctx, q, func(*classad.Ad, []byte, error) error {
		there = true
		return nil
	})
	if err != nil || there {
		return nil, err
	}
	reason := fmt.Sprintf("the newest job that was read is not in the history of %s any more", at)
	p.log.Error("ads were not found again", "schedd", at.name, "reason", reason,
		"remedy", "increase MAX_HISTORY_LOG or MAX_HISTORY_ROTATIONS; ads can be brought back with import")
	return &sdk.Gap{From: last, To: p.began, Reason: reason}, nil
}

// pullHistory sends the ads that condor_history gives. Looked is called behind each that was
// taken, or left to the next pass.
func (p *pass) pullHistory(ctx context.Context, at *schedd, q condor.Query, r *reading, looked func(verdict)) error {
	p.Begin()
	flush := func() error {
		err := p.Send(ctx, &r.Reading, &sdk.Progress{Unit: "ads", At: at.String() + ", " + p.Last.Format(time.RFC3339)})
		p.Begin()
		r.Gap = nil
		return err
	}
	err := at.client.History(ctx, q, func(ad *classad.Ad, raw []byte, err error) error {
		if err != nil {
			p.Refuse("", err, raw, &r.Reading)
			p.Took(0)
			return nil
		}
		p.ad = *ad
		v := p.addAd(q.Epochs, string(raw), r)
		if v == nextBatch {
			if err := flush(); err != nil {
				return err
			}
			v = p.addAd(q.Epochs, string(raw), r)
		}
		looked(v)
		if v == nextPass {
			return nil
		}
		if p.Took(0); p.Full() {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.Gap != nil {
		p.Batch.Gaps = append(p.Batch.Gaps, *r.Gap)
	}
	return flush()
}

// askAgain sends the runs again that ended at since or later.
func (p *pass) askAgain(ctx context.Context, at *schedd, since time.Time, r *reading) error {
	// No run of a job ends behind its last change of status. What the history says of runs
	// that ended shortly before is needed to leave out their epochs.
	for _, of := range []kind{history, epochs} {
		name := [...]string{epochs: "EpochWriteDate", history: "EnteredCurrentStatus"}[of]
		q := condor.Query{Epochs: of == epochs, Constraints: append(p.config.constraintList(), fmt.Sprintf("%s >= %d", name, since.Add(-edge).Unix()))}
		if err := p.withoutEpochs(of, p.pullHistory(ctx, at, q, r, func(verdict) {})); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) constraintList() []string {
	if c.Constraint == "" {
		return nil
	}
	return []string{c.Constraint}
}

func (r *reach) markOf(of kind) *mark { return [...]*mark{epochs: r.AskedOf, history: r.Asked}[of] }

func (r *reach) setMark(of kind, m *mark) {
	*[...]**mark{epochs: &r.AskedOf, history: &r.Asked}[of] = m
}
