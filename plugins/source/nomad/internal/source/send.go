package source

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// finishTouched finds what the touched entries lack, and sends them.
func (p *pass) finishTouched(ctx context.Context) error {
	p.touched = unique(p.touched)
	var lack []*run.Entry
	for _, e := range p.touched {
		if e.Job == nil || e.NoJob {
			lack = append(lack, e)
		}
	}
	if len(lack) > 0 {
		if err := p.resolve(ctx, lack, p.observe); err != nil {
			return err
		}
	}
	if err := p.place(ctx); err != nil {
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

// askNodes is how often nodes are asked for at most because of one that is not known.
const askNodes = 30 * time.Second

// place says on which nodes the touched entries are.
func (p *pass) place(ctx context.Context) error {
	for _, e := range p.touched {
		n, known := p.nodes[e.Alloc.NodeID]
		if !known && e.Node == (run.Node{}) && e.Alloc.NodeID != "" {
			if err := p.listNodes(ctx); err != nil {
				return err
			}
			n, known = p.nodes[e.Alloc.NodeID]
		}
		if known {
			e.Node = run.Node{Datacenter: n.Datacenter, Pool: n.NodePool, Class: n.NodeClass}
		}
	}
	return nil
}

// listNodes learns the nodes. That the token may not see them is no reason to stop.
func (p *pass) listNodes(ctx context.Context) error {
	if time.Since(p.asked) < askNodes {
		return nil
	}
	p.asked = time.Now()
	nodes, err := p.nomad.Nodes(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.facts.Judge(p.factSettings(), "nodes", err)
	for _, n := range nodes {
		p.nodes[n.ID] = n
	}
	return nil
}

// flush writes what was learned into the journal, sends it, and notes that it was.
func (p *pass) flush(ctx context.Context) error {
	touched := unique(p.touched)
	p.touched = nil
	var sent []run.View
	var missed journal.Holes
	for _, e := range touched {
		sent = append(sent, p.add(e)...)
		missed.Add(e.Alloc.Namespace+"/"+e.Alloc.JobID, e.Holes)
	}
	if g, some := missed.Gap("starts of tasks were not seen, of which Nomad keeps no times", "running allocations disappeared from Nomad, whose ends are estimated"); some {
		p.batch.Gaps = append(p.batch.Gaps, g)
	}
	once := p.number(touched)
	if err := p.keep(touched); err != nil {
		return err
	}
	b := p.batch
	p.batch = sdk.Batch{}
	if once {
		stands := b.Checkpoint
		if stands == nil {
			stands = p.stands
		}
		var err error
		if b.Checkpoint, err = withBatches(stands, p.done.Batches); err != nil {
			return err
		}
	}
	if b.Checkpoint != nil {
		p.stands = b.Checkpoint
	}
	empty := len(b.Jobs)+len(b.Gaps)+len(b.Directory) == 0 && b.Skipped == 0 && b.Checkpoint == nil && b.Census == nil && b.Capacity == nil
	if !empty {
		if err := p.out.Send(ctx, b); err != nil {
			return fmt.Errorf("%w: %w", errDaemon, err)
		}
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
		if e.Unsent() {
			e.Batch, p.done.Batches = next, next
		}
	}
	return p.done.Batches == next
}

// keep writes entries into the journal, with those of which the daemon has got more
// meanwhile. That needs no write of its own: what is not noted is sent once more
// after a crash.
func (p *pass) keep(touched []*run.Entry) error {
	if len(touched) == 0 && len(p.noted) < maxNoted {
		return nil
	}
	all := unique(append(p.noted, touched...))
	p.noted = nil
	if err := p.journal.Put(all...); err != nil {
		return fmt.Errorf("%w: %w", errDaemon, err)
	}
	return nil
}

const maxNoted = 1000 // entries that wait to be written

// note notes what the daemon has now.
func (p *pass) note(touched []*run.Entry, sent []run.View) {
	news := map[*run.Entry]bool{}
	for i := range sent {
		if sent[i].Tell() {
			news[sent[i].Entry] = true
		}
	}
	for _, e := range touched {
		if news[e] || e.Unsent() {
			e.TellOnce()
			p.noted = append(p.noted, e)
		}
		if e.Settled() {
			p.settle(e)
		}
	}
}

// add puts the runs of an entry into the batch that are not told, and the last one of
// each task, of which more than the end may have changed.
func (p *pass) add(e *run.Entry) []run.View {
	var sent []run.View
	for _, v := range e.Views(p.config.ends) {
		if v.Told() && !v.Last {
			continue
		}
		if p.renew && !v.Stop.IsZero() && v.Stop.Before(p.since) {
			sent = append(sent, v) // it was told long ago
			continue
		}
		if job, send := p.jobOf(&v); send {
			p.batch.Jobs = append(p.batch.Jobs, job)
		}
		sent = append(sent, v)
	}
	if e.Alloc.Over() && !e.Unstarted {
		p.batch.Skipped += unstarted(e)
	}
	return sent
}

// jobOf makes a job of a run. Send is false for a run that is not to be sent at all.
func (s *Source) jobOf(v *run.View) (job sdk.Job, send bool) {
	ended := !v.Stop.IsZero()
	if !ended && !s.config.Running {
		return sdk.Job{}, false
	}
	wanted := s.wanted(v) && (!ended || !v.Stop.Before(s.config.Earliest.Time))
	values, unread := v.Values(s.config.owner, s.wants)
	return sdk.Job{Run: v.Name(), Values: values, Unread: unread, Ended: ended, Excluded: !wanted}, true
}

// wanted applies the filters.
func (s *Source) wanted(v *run.View) bool {
	name, pool := v.Alloc.JobID, v.Node.Pool
	if v.Job != nil {
		name = v.Job.Name
		if pool == "" {
			pool = v.Job.NodePool
		}
	}
	return s.config.filter.wants(v.Alloc.Namespace, name, pool)
}

// unstarted counts the tasks of an allocation that is over which never started.
func unstarted(e *run.Entry) (n int64) {
	if len(e.Tasks) == 0 {
		return 1
	}
	for _, t := range e.Tasks {
		if len(t.Runs) == 0 {
			n++
		}
	}
	return n
}

// listJobs learns which jobs there are, who owns them, and how many wait and run.
func (p *pass) listJobs(ctx context.Context) ([]sdk.Person, facts.Counts, error) {
	var people []sdk.Person
	queue := facts.Counts{}
	err := p.nomad.Jobs(ctx, func(page []*nomad.JobStub) error {
		for _, j := range page {
			if !p.config.filter.wants(j.Namespace, j.Name, j.NodePool) {
				continue
			}
			count(queue, j, p.config.owner.ID, p.config.Queue)
			people = append(people, person(j, p.config.owner)...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, p.blame(ctx, err)
	}
	return people, queue, nil
}
