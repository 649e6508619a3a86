package source

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// finishTouched finds what the touched pods lack, and sends them.
func (p *pass) finishTouched(ctx context.Context) error {
	p.touched = unique(p.touched)
	if err := p.cluster.complete(ctx, p, p.touched); err != nil {
		return err
	}
	return p.flush(ctx)
}

func unique(list []*run.Entry) []*run.Entry {
	seen := make(map[*run.Entry]bool, len(list))
	return slices.DeleteFunc(list, func(e *run.Entry) bool {
		had := seen[e]
		seen[e] = true
		return had
	})
}

// refuse tells of a pod that is none, once.
func (p *pass) refuse(b *kube.BadObject) {
	if key := b.Name + string(b.Raw); !p.refused[key] {
		p.refused[key] = true
		p.batch.Refused = append(p.batch.Refused, sdk.Refused{Run: b.UID, Message: "pod " + b.Error(), Raw: b.Raw})
	}
}

// flush writes what was learned into the journal, sends it, and notes that it was.
func (p *pass) flush(ctx context.Context) error {
	touched := unique(p.touched)
	p.touched = nil
	var sent []run.View
	var missed journal.Holes
	for _, e := range touched {
		sent = append(sent, p.add(e)...)
		missed.Add(e.Pod.Metadata.Namespace+"/"+e.Pod.Metadata.Name, e.Holes)
	}
	if g, some := missed.Gap("starts of containers were not seen, of which Kubernetes keeps no times", "running pods disappeared from Kubernetes, whose ends are estimated"); some {
		p.batch.Gaps = append(p.batch.Gaps, g)
	}
	once := p.number(touched)
	if err := p.keep(touched); err != nil {
		return err
	}
	b := p.batch
	p.batch = sdk.Batch{}
	worth := len(b.Jobs)+len(b.Gaps)+len(b.Refused) > 0 || b.Skipped > 0 || b.Census != nil || b.Capacity != nil || !b.Watermark.IsZero()
	if worth || p.moved || once {
		var err error
		switch {
		case p.moved:
			b.Checkpoint = p.done.encode()
		case once:
			b.Checkpoint, err = withBatches(p.stands, p.done.Batches)
		}
		if err != nil {
			return err
		}
		if b.Checkpoint != nil {
			p.stands = b.Checkpoint
		}
		if err := p.out.Send(ctx, b); err != nil {
			return fmt.Errorf("%w: %w", errDaemon, err)
		}
		p.moved = false
	}
	p.note(touched, sent)
	return nil
}

// number gives the entries of which something is told once the number of the batch that tells
// it. The checkpoint of that batch has the number too, so that a restart knows whether the
// daemon has it. It reports whether there are any.
func (p *pass) number(touched []*run.Entry) bool {
	next := p.done.Batches + 1
	for _, e := range touched {
		if e.Untold() {
			e.Batch, p.done.Batches = next, next
		}
	}
	return p.done.Batches == next
}

// keep writes pods into the journal, with those of which the daemon has got more
// meanwhile. That needs no write of its own: what is not noted is sent once more after a
// crash.
func (p *pass) keep(touched []*run.Entry) error {
	started := slices.Clone(touched)
	started = slices.DeleteFunc(started, func(e *run.Entry) bool { return len(e.Containers) == 0 && !e.Over() })
	if len(started) == 0 && len(p.noted) < maxNoted {
		return nil
	}
	all := unique(append(p.noted, started...))
	p.noted = nil
	if err := p.journal.Put(all...); err != nil {
		return fmt.Errorf("%w: %w", errDaemon, err)
	}
	return nil
}

const maxNoted = 1000 // pods that wait to be written

// note notes what the daemon has now.
func (p *pass) note(touched []*run.Entry, sent []run.View) {
	news := map[*run.Entry]bool{}
	for i := range sent {
		if sent[i].Tell() {
			news[sent[i].Entry] = true
		}
	}
	for _, e := range touched {
		if news[e] || e.Untold() {
			e.TellOnce()
			p.noted = append(p.noted, e)
		}
		p.usage.want(e, p.views(e))
		p.holding.consider(p, e)
		if p.over(e) {
			p.settle(e)
		}
	}
}

// add puts the runs of a pod into the batch that are not told, and the last one of each
// container, of which more than the end may have changed.
func (p *pass) add(e *run.Entry) []run.View {
	var sent []run.View
	views := p.views(e)
	for i := range views {
		v := &views[i]
		if v.Told() && !v.Last {
			continue
		}
		if p.renew && !v.Open() && v.Stop.Before(p.since) {
			sent = append(sent, *v) // it was told long ago
			continue
		}
		p.usage.expect(v)
		if job, send := p.jobOf(v); send {
			p.batch.Jobs = append(p.batch.Jobs, job)
		}
		sent = append(sent, *v)
	}
	if e.Over() && !e.Counted {
		p.batch.Skipped += e.Unstarted()
		if e.Pod.Status.Phase == kube.Succeeded && len(views) == 0 {
			p.refuse(&kube.BadObject{Name: e.Pod.Metadata.Namespace + "/" + e.Pod.Metadata.Name, UID: e.UID(), Raw: raw(e), Err: errNoStatus})
		}
	}
	return sent
}

var errNoStatus = fmt.Errorf("has succeeded, but its status has no times of its containers")

func raw(e *run.Entry) []byte {
	text, _ := json.Marshal(&e.Pod) // a pod that was read can be written
	return text
}

// jobOf makes a job of a run. Send is false for a run that is not to be sent at all.
func (s *Source) jobOf(v *run.View) (job sdk.Job, send bool) {
	if v.Open() && !s.config.Running {
		return sdk.Job{}, false
	}
	values, unread := s.columns.Values(v)
	wanted := s.config.wanted(&v.Pod.Metadata) && (v.Open() || !v.Stop.Before(s.config.Earliest.Time))
	return sdk.Job{Run: v.Name(), Values: values, Unread: unread, Ended: !v.Open(), Excluded: !wanted, Findings: s.findings(v.Entry)}, true
}
