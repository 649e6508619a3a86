package source

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// finishTouched finds what the touched pods lack, and sends them.
func (p *pass) finishTouched(ctx context.Context) error {
	if err := p.cluster.completePods(ctx, p, p.Touched()); err != nil {
		return err
	}
	return p.flush(ctx)
}

// refusePod tells of a pod that is none, once.
func (p *pass) refusePod(b *kube.BadObject) {
	if key := b.Name + string(b.Raw); !p.refused[key] {
		p.refused[key] = true
		p.Batch.Refused = append(p.Batch.Refused, sdk.Refused{Run: b.UID, Message: "pod " + b.Error(), Raw: b.Raw})
	}
}

// flush sends what was learned.
func (p *pass) flush(ctx context.Context) error {
	if p.moved {
		p.Batch.Checkpoint = p.done.encodeWire()
	}
	err := p.Flush(ctx)
	p.moved = p.moved && err != nil
	return err
}

// journalWay is how the pass sends.
func (p *pass) journalWay(out *sdk.Stream) journal.Way[*run.Entry] {
	return journal.Way[*run.Entry]{
		Reach: &p.done.Reach, Out: out, Numbered: withBatches, Sent: p.afterSend,
		Add: func(e *run.Entry) func() bool {
			runs := p.addToBatch(e)
			return func() (news bool) {
				for i := range runs {
					news = runs[i].Tell() || news
				}
				return news
			}
		},
		Place:  func(e *run.Entry) string { return e.Pod.Metadata.Namespace + "/" + e.Pod.Metadata.Name },
		Starts: "starts of containers were not seen, of which Kubernetes keeps no times",
		Gone:   "running pods disappeared from Kubernetes, whose ends are estimated",
		Empty:  func(e *run.Entry) bool { return len(e.Containers) == 0 && !e.Over() },
	}
}

// afterSend goes on with a pod of which the daemon has the news.
func (p *pass) afterSend(e *run.Entry) {
	p.usage.schedulePod(e, p.runViews(e))
	p.holding.updateHold(p, e)
	if p.isOver(e) {
		p.closePod(e)
	}
}

// addToBatch puts the runs of a pod into the batch that are not told, and the last one of each
// container, of which more than the end may have changed.
func (p *pass) addToBatch(e *run.Entry) []run.View {
	var sent []run.View
	views := p.runViews(e)
	for i := range views {
		v := &views[i]
		if v.Told() && !v.Last {
			continue
		}
		if p.renew && !v.Open() && v.Stop.Before(p.since) {
			sent = append(sent, *v) // it was told long ago
			continue
		}
		p.usage.expectUsage(v)
		if job, send := p.jobOf(v); send {
			p.Batch.Jobs = append(p.Batch.Jobs, job)
		}
		sent = append(sent, *v)
	}
	if e.Over() && !e.Counted {
		p.Batch.Skipped += e.Unstarted()
		if e.Pod.Status.Phase == kube.Succeeded && len(views) == 0 {
			p.refusePod(&kube.BadObject{Name: e.Pod.Metadata.Namespace + "/" + e.Pod.Metadata.Name, UID: e.UID(), Raw: rawPod(e), Err: errNoStatus})
		}
	}
	return sent
}

var errNoStatus = fmt.Errorf("has succeeded, but its status has no times of its containers")

func rawPod(e *run.Entry) []byte {
	text, _ := json.Marshal(&e.Pod) // a pod that was read can be written
	return text
}

// jobOf makes a job of a run. Send is false for a run that is not to be sent at all.
func (s *Source) jobOf(v *run.View) (job sdk.Job, send bool) {
	if v.Open() && !s.config.Running {
		return sdk.Job{}, false
	}
	values, unread := s.columns.Values(v)
	wanted := s.config.wantsPod(&v.Pod.Metadata) && (v.Open() || !v.Stop.Before(s.config.Earliest.Time))
	return sdk.Job{Run: v.Name(), Values: values, Unread: unread, Ended: !v.Open(), Excluded: !wanted, Findings: s.rightFindings(v.Entry)}, true
}
