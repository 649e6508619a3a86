package collect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Window is a part of the past, from From up to and without To.
type Window struct {
	From, To time.Time
}

// Recollect collects a window again under the present mapping and sends all of
// it, what was sent before too; what the mapping leaves out now is withdrawn.
// With plan it only counts. The days of the window are audited again afterwards.
// Progress is called after every batch. A collection
// that is under way is interrupted, and goes on from its checkpoint afterwards.
func (l *Loop) Recollect(ctx context.Context, w Window, plan bool, progress func(Counts, *bursarv1.Progress) error) (total Counts, err error) {
	run, leave := l.lockSource(ctx, recollection)
	defer leave()
	total, err = l.recollectWindow(run, w, plan, progress)
	if run.Err() != nil && ctx.Err() == nil {
		err = errors.New("interrupted, because the source's configuration changed; what was sent so far stays, start again for the rest")
	}
	return total, err
}

func (l *Loop) recollectWindow(ctx context.Context, w Window, plan bool, progress func(Counts, *bursarv1.Progress) error) (Counts, error) {
	var total Counts
	session, err := l.sessions.Plugin(ctx)
	if err != nil {
		return total, err
	}
	if !plan {
		if err := l.recountWindow(ctx, w); err != nil {
			return total, err
		}
	}
	start := &bursarv1.CollectRequest_Start{Window: &bursarv1.CollectRequest_Window{From: w.From.UnixMicro(), To: w.To.UnixMicro()}}
	err = session.Stream(ctx, start, func(resp *bursarv1.CollectResponse) error {
		counts, err := l.recollectBatch(ctx, session, resp, plan)
		total.addCounts(counts)
		if err != nil {
			return err
		}
		return progress(total, resp.GetProgress())
	})
	return total, err
}

func (l *Loop) recollectBatch(ctx context.Context, session *host.Session, resp *bursarv1.CollectResponse, plan bool) (Counts, error) {
	l.work.Lock()
	defer l.work.Unlock()
	l.useMapping(session)
	l.tr.amnesia, l.tr.again = true, true
	resp.Checkpoint, resp.Watermark = nil, 0
	d, err := l.tr.translateBatch(resp)
	if err != nil {
		return Counts{}, err
	}
	if plan {
		return d.counts, nil
	}
	return d.counts, l.commitDraft(ctx, d)
}

// Retry maps a quarantined job again and sends what becomes of it, which settles
// the quarantine. The error says why it fails again; then it stays.
func (l *Loop) Retry(ctx context.Context, quarantineID string, raw []byte) error {
	plugin, err := l.sessions.Plugin(ctx)
	if err != nil {
		return err
	}
	if plugin.Mapper == nil {
		return errors.New("what was pushed is not mapped, so there is nothing to try again: push it again, corrected, and drop this")
	}
	job, err := translate.ParseRaw(raw, plugin.Description.GetAttributes())
	if err != nil {
		return err
	}
	l.work.Lock()
	defer l.work.Unlock()
	l.useMapping(plugin)
	if !job.GetExcluded() {
		if _, _, err := plugin.Mapper.Map(job); err != nil {
			return fmt.Errorf("the job fails again: %w", err)
		}
	}
	l.tr.amnesia, l.tr.again = false, false
	d := newDraft(l.source)
	l.tr.translateJob(d, job, quarantineID)
	return l.commitDraft(ctx, d)
}

// errEnough ends a sample.
var errEnough = errors.New("enough")

// Sample collects a window and hands each job to show until that returns false, and input
// that is not a job to refused. Nothing is kept: it is for a preview.
func Sample(ctx context.Context, session *host.Session, w Window, show func(*bursarv1.Job) bool, refused func(*bursarv1.Refused)) error {
	start := &bursarv1.CollectRequest_Start{Window: &bursarv1.CollectRequest_Window{From: w.From.UnixMicro(), To: w.To.UnixMicro()}}
	err := session.Stream(ctx, start, func(resp *bursarv1.CollectResponse) error {
		for _, job := range resp.GetJobs() {
			if !show(job) {
				return errEnough
			}
		}
		for _, r := range resp.GetRefused() {
			refused(r)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
