package source

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// tellFacts sends the facts that are due, after the jobs: what is wrong with them never
// holds up a record. With renew it sends also what was sent before, because
// someone has lost it.
func (p *pass) tellFacts(ctx context.Context, renew bool) error {
	if renew {
		p.told = facts.Told{}
	}
	before := p.told
	with := facts.Settings{Every: p.config.facts, Now: func() time.Time { return p.began }, Log: p.log, Remedy: remedyForFact}
	list := []facts.Fact{{Name: facts.Capacity, Ask: p.tellCapacity}, {Name: facts.Census, Ask: p.tellCensus}, {Name: facts.Directory, Ask: p.tellDirectory}}
	return p.facts.Tell(ctx, with, renew, list, func() error {
		if p.told != before {
			p.batch.Checkpoint = checkpoint{Done: p.done, Open: p.longRuns(p.open), Told: p.told}.encodeCheckpoint()
		} else if p.batch.Census == nil {
			return nil
		}
		return p.flushBatch(ctx)
	})
}

// remedyForFact says what to do about a fact that cannot be had.
func remedyForFact(name string) string {
	return "make the command work for this user, or set " + name + " = false in the source's config block"
}

// tellCapacity sends what the cluster has when that has changed.
func (p *pass) tellCapacity(ctx context.Context) error {
	nodes, err := p.slurm.Nodes(ctx)
	if err != nil {
		return err
	}
	components, err := p.config.filter.sumNodes(nodes)
	if err != nil {
		return err
	}
	components, unknown := p.config.filter.addParts(components, nodes)
	if unknown != nil {
		unknown = &facts.Remediable{Err: unknown, Remedy: "name the types of these GPUs in gres.conf with a model and a profile, such as a100_3g.20gb"}
	}
	if news := p.told.News(p.now, components); news != nil {
		p.batch.Capacity = news
	}
	return unknown
}

// tellCensus sends how many jobs run and wait now.
func (p *pass) tellCensus(ctx context.Context) error {
	at := p.Source.now()
	queue := facts.Counts{}
	err := p.slurm.Jobs(ctx, func(j cluster.Job) {
		if p.config.filter.wantsNow(&j) {
			addTo(queue, &j)
		}
	})
	if err != nil {
		return err
	}
	rows, err := queue.Rows(facts.Most)
	p.batch.Census = &sdk.Census{At: at, Rows: rows}
	return err
}

// addTo counts a job where it runs or waits.
func addTo(queue facts.Counts, j *cluster.Job) {
	at := facts.Place{User: j.User, Queue: j.Partition}
	if j.Running {
		queue.Add(at, 1, 0)
	} else {
		queue.Add(at, 0, 1)
	}
}

// tellDirectory sends who belongs to which accounts when that has changed.
func (p *pass) tellDirectory(ctx context.Context) error {
	list, err := p.slurm.Associations(ctx)
	if err != nil {
		return err
	}
	people := p.config.filter.listPeople(list)
	unnamed := p.nameUsers(ctx, people)
	if unnamed != nil && !errors.Is(unnamed, fs.ErrNotExist) {
		return unnamed
	}
	people, err = facts.Fit(people, facts.Most)
	if now := facts.Digest(people); len(people) > 0 && now != p.told.Directory {
		p.told.Directory, p.batch.Directory = now, people
	}
	return cmp.Or(err, unnamed)
}

// nameUsers puts the names of users where they are known.
func (p *pass) nameUsers(ctx context.Context, people []sdk.Person) error {
	if !p.config.Names {
		return nil
	}
	users := make([]string, len(people))
	for i := range people {
		users[i] = people[i].User
	}
	names, err := p.slurm.Names(ctx, users)
	if err != nil {
		return &facts.Remediable{Err: err, Remedy: "set getent to the path of getent, or names = false, in the source's config block"}
	}
	for i := range people {
		people[i].Name = names[people[i].User]
	}
	return nil
}
