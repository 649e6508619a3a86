package source

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// finishTouched finds what the touched entries lack, and sends them.
func (p *pass) finishTouched(ctx context.Context) error {
	var lack []*run.Entry
	for _, e := range p.Touched() {
		if e.Job == nil || e.NoJob {
			lack = append(lack, e)
		}
	}
	if len(lack) > 0 {
		if err := p.resolveJobs(ctx, lack, p.observeAllocation); err != nil {
			return err
		}
	}
	if err := p.addNodes(ctx); err != nil {
		return err
	}
	return p.Flush(ctx)
}

// askNodes is how often nodes are asked for at most because of one that is not known.
const askNodes = 30 * time.Second

// addNodes adds to the touched entries on which nodes they are.
func (p *pass) addNodes(ctx context.Context) error {
	for _, e := range p.Touched() {
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

// journalWay is how the pass sends.
func (p *pass) journalWay(out *sdk.Stream) journal.Way[*run.Entry] {
	return journal.Way[*run.Entry]{
		Reach: &p.done.Reach, Out: out, Numbered: withBatches,
		Add: func(e *run.Entry) func() bool {
			runs := p.addToBatch(e)
			return func() (news bool) {
				for i := range runs {
					news = runs[i].Tell() || news
				}
				return news
			}
		},
		Place:  func(e *run.Entry) string { return e.Alloc.Namespace + "/" + e.Alloc.JobID },
		Starts: "starts of tasks were not seen, of which Nomad keeps no times",
		Gone:   "running allocations disappeared from Nomad, whose ends are estimated",
		Sent: func(e *run.Entry) {
			if e.Settled() {
				p.closeEntry(e)
			}
		},
	}
}

// addToBatch puts the runs of an entry into the batch that are not told, and the last one of
// each task, of which more than the end may have changed.
func (p *pass) addToBatch(e *run.Entry) []run.View {
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
			p.Batch.Jobs = append(p.Batch.Jobs, job)
		}
		sent = append(sent, v)
	}
	if e.Alloc.Over() && !e.Unstarted {
		p.Batch.Skipped += countUnstarted(e)
	}
	return sent
}

// jobOf makes a job of a run. Send is false for a run that is not to be sent at all.
func (s *Source) jobOf(v *run.View) (job sdk.Job, send bool) {
	ended := !v.Stop.IsZero()
	if !ended && !s.config.Running {
		return sdk.Job{}, false
	}
	wanted := s.wantsView(v) && (!ended || !v.Stop.Before(s.config.Earliest.Time))
	values, unread := v.Values(s.config.owner, s.wants)
	return sdk.Job{Run: v.Name(), Values: values, Unread: unread, Ended: ended, Excluded: !wanted}, true
}

// wantsView reports whether the filters let a run through.
func (s *Source) wantsView(v *run.View) bool {
	name, pool := v.Alloc.JobID, v.Node.Pool
	if v.Job != nil {
		name = v.Job.Name
		if pool == "" {
			pool = v.Job.NodePool
		}
	}
	return s.config.filter.wantsJob(v.Alloc.Namespace, name, pool)
}

// countUnstarted counts the tasks of an allocation that is over which never started.
func countUnstarted(e *run.Entry) (n int64) {
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
			if !p.config.filter.wantsJob(j.Namespace, j.Name, j.NodePool) {
				continue
			}
			countAllocations(queue, j, p.config.owner.ID, p.config.Queue)
			people = append(people, ownerOf(j, p.config.owner)...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, p.markServerError(ctx, err)
	}
	return people, queue, nil
}
