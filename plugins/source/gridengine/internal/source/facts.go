package source

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/accounting"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/grid"
)

// readFacts reads what is told beside runs.
func (c *config) readFacts() {
	c.facts = map[string]time.Duration{}
	commands := len(c.cells) > 0 && !slices.ContainsFunc(c.cells, func(g gridCell) bool { return g.commands == "" })
	if c.Capacity && commands {
		c.facts[facts.Capacity] = c.CapacityInterval
	}
	if c.Census && commands {
		c.facts[facts.Census] = c.CensusInterval
	}
	if c.Directory {
		c.facts[facts.Directory] = c.DirectoryInterval
	}
}

// asker is what the facts need of a cell.
type asker interface {
	Hosts(ctx context.Context) ([]grid.Host, error)
	Consumables(ctx context.Context, names, hosts []string) (map[string]int64, error)
	Jobs(ctx context.Context, yield func(grid.Job)) error
	Groups(ctx context.Context) (map[string][]string, error)
	Names(ctx context.Context, users []string) (map[string]string, error)
}

// teller tells the facts, and remembers what saves work or words.
type teller struct {
	config *config
	cells  []asker
	now    func() time.Time
	log    *slog.Logger

	facts.Schedule

	known  map[string]grid.Host       // hosts as they were seen last, by cell and name
	users  map[string]map[string]bool // owners of runs with their groups
	primed bool                       // the owners of the current files are known
}

func newTeller(c *config, now func() time.Time, log *slog.Logger) *teller {
	t := &teller{config: c, now: now, log: log,
		known: map[string]grid.Host{}, users: map[string]map[string]bool{}}
	for _, g := range c.cells {
		t.cells = append(t.cells, &grid.Client{Dir: g.commands, Root: g.root, Cell: g.sgeCell, Getent: string(c.Getent), Timeout: c.Timeout})
	}
	return t
}

// noteOwner notes whose run a line tells of.
func (t *teller) noteOwner(l *accounting.Line) {
	user := l.Owner()
	groups := t.users[user]
	if groups == nil {
		if user == "" {
			return
		}
		user = strings.Clone(user) // not all of the line
		groups = map[string]bool{}
		t.users[user] = groups
	}
	if g := l.Group(); g != "" && !groups[g] {
		groups[strings.Clone(g)] = true
	}
}

// allAnswered reports whether all that was asked of qmaster last was answered: while
// it is down runs end that it writes later.
func (t *teller) allAnswered() bool { return !t.Failed(facts.Census) && !t.Failed(facts.Capacity) }

// sendFacts sends the facts that are due, after the runs: what is wrong with them never
// holds up a record. With renew it sends also what was sent before, because someone
// has lost it.
func (t *teller) sendFacts(ctx context.Context, p *pass, renew bool) error {
	if renew {
		p.checkpoint.Told = facts.Told{}
	}
	before := p.checkpoint.Told
	with := t.factSettings()
	var b sdk.Batch
	as := func(ask func(context.Context, *sdk.Batch, *facts.Told) error) func(context.Context) error {
		return func(ctx context.Context) error { return ask(ctx, &b, &p.checkpoint.Told) }
	}
	list := []facts.Fact{{Name: facts.Capacity, Ask: as(t.tellCapacity)}, {Name: facts.Census, Ask: as(t.tellCensus)}, {Name: facts.Directory, Ask: as(t.tellDirectory)}}
	return t.Tell(ctx, with, renew, list, func() error {
		if p.checkpoint.Told != before {
			b.Checkpoint = p.checkpoint.encodeVersioned()
		} else if b.Census == nil {
			return nil
		}
		return p.Out.Send(ctx, b)
	})
}

// factSettings are those of the facts.
func (t *teller) factSettings() facts.Settings {
	return facts.Settings{Every: t.config.facts, Now: t.now, Log: t.log, Remedy: factRemedy}
}

// factRemedy says what to do about a fact that cannot be had.
func factRemedy(name string) string {
	if name == capacityOfGPUs {
		return "make qconf work for this user, or set gpu_requests = [] in the source's config block"
	}
	text := "make the command work for this user, or set " + name + " = false in the source's config block"
	if name == facts.Directory {
		return text
	}
	return text + "; until then the source does not say up to when it is complete"
}

// capacityOfGPUs is what is told of the hosts' GPUs, by a command that the rest does not need.
const capacityOfGPUs = "capacity of GPUs"

// tellCapacity tells what the cells have when that has changed. While GPUs cannot be asked for,
// what was told before holds.
func (t *teller) tellCapacity(ctx context.Context, b *sdk.Batch, told *facts.Told) error {
	totals := map[string]int64{}
	var noGPUs error
	for i, cell := range t.cells {
		hosts, err := cell.Hosts(ctx)
		if err != nil {
			return err
		}
		noGPUs = cmp.Or(noGPUs, t.addGPUs(ctx, cell, hosts))
		for _, h := range hosts {
			t.config.filter.addHost(totals, t.fillUnknown(t.config.cells[i].name, h))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.Judge(t.factSettings(), capacityOfGPUs, noGPUs)
	if noGPUs != nil && told.Capacity != "" {
		return nil
	}
	if list := facts.Amounts(totals); len(list) > 0 {
		b.Capacity = told.News(t.now(), list)
	}
	return nil
}

// addGPUs adds to the hosts of wanted queues the GPUs that jobs there can ask for.
func (t *teller) addGPUs(ctx context.Context, cell asker, hosts []grid.Host) error {
	var names []string
	for _, h := range hosts {
		if slots, _ := t.config.filter.slotCounts(h); slots > 0 {
			names = append(names, h.Name)
		}
	}
	gpus, err := cell.Consumables(ctx, t.config.GPURequests, names)
	for i := range hosts {
		hosts[i].GPUs = gpus[hosts[i].Name]
	}
	return err
}

// fillUnknown is a host with what it had when it was seen last in place of what is not
// known, as of one that is down.
func (t *teller) fillUnknown(cell string, h grid.Host) grid.Host {
	key := cell + "/" + h.Name
	before := t.known[key]
	h.Cores, h.MemoryMB = cmp.Or(h.Cores, before.Cores), cmp.Or(h.MemoryMB, before.MemoryMB)
	t.known[key] = h
	return h
}

// slotCounts are those of a host in the wanted queues, and those of the largest of them.
func (f *filter) slotCounts(h grid.Host) (all, largest int64) {
	for queue, n := range h.Slots {
		if inList(f.Queues, queue) {
			all, largest = all+n, max(largest, n)
		}
	}
	return all, largest
}

// addHost adds what jobs in the wanted queues can use of a host.
func (f *filter) addHost(totals map[string]int64, h grid.Host) {
	for queue, n := range h.Slots {
		if inList(f.Queues, queue) {
			totals["Slots:"+queue] += n
		}
	}
	all, largest := f.slotCounts(h)
	if all == 0 {
		return
	}
	totals["Cores"] += min(all, max(h.Cores, largest)) // queues overlap
	totals["Memory"] += h.MemoryMB
	if h.GPUs > 0 {
		totals["GPUs"] += h.GPUs
	}
}

// tellCensus tells how many jobs run and wait now.
func (t *teller) tellCensus(ctx context.Context, b *sdk.Batch, _ *facts.Told) error {
	at, queue := t.now(), facts.Counts{}
	f := &t.config.filter
	for _, cell := range t.cells {
		err := cell.Jobs(ctx, func(j grid.Job) {
			switch {
			case !inList(f.Users, j.User):
			case j.Running && inList(f.Queues, j.Queue):
				queue.Add(facts.Place{User: j.User, Queue: j.Queue}, j.Tasks, 0)
			case !j.Running:
				queue.Add(facts.Place{User: j.User}, 0, j.Tasks)
			}
		})
		if err != nil {
			return err
		}
	}
	rows, err := queue.Rows(facts.Most)
	b.Census = &sdk.Census{At: at, Rows: rows}
	return err
}

// tellDirectory tells who is in which groups when that has changed.
func (t *teller) tellDirectory(ctx context.Context, b *sdk.Batch, told *facts.Told) error {
	if len(t.cells) == 0 {
		return nil
	}
	t.learnOwners()
	groups, err := t.cells[0].Groups(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var people []sdk.Person
	for _, user := range slices.Sorted(maps.Keys(t.users)) {
		all := append(slices.Collect(maps.Keys(t.users[user])), groups[user]...)
		slices.Sort(all)
		people = append(people, sdk.Person{User: user, Groups: slices.Compact(all)})
	}
	if err == nil {
		err = t.addNames(ctx, people)
	}
	people, crowded := facts.Fit(people, facts.Most)
	if now := facts.Digest(people); len(people) > 0 && now != told.Directory {
		told.Directory, b.Directory = now, people
	}
	return cmp.Or(crowded, err)
}

const askNames = 200 // users in one question

// addNames puts the names of users where they are known.
func (t *teller) addNames(ctx context.Context, people []sdk.Person) error {
	if !t.config.Names {
		return nil
	}
	for some := range slices.Chunk(people, askNames) {
		users := make([]string, len(some))
		for i := range some {
			users[i] = some[i].User
		}
		names, err := t.cells[0].Names(ctx, users)
		if err != nil {
			return &facts.Remediable{Err: err, Remedy: "set getent to the path of getent, or names = false, in the source's config block"}
		}
		for i := range some {
			some[i].Name = names[some[i].User]
		}
	}
	return nil
}

// learnOwners learns the owners of the runs in the current files, once: after a restart
// nothing of them is read again.
func (t *teller) learnOwners() {
	if t.primed {
		return
	}
	t.primed = true
	for i := range t.config.cells {
		f, err := os.Open(t.config.cells[i].log.Path)
		if err != nil {
			continue // it is told where it counts
		}
		forEachRun(f, t.noteOwner)
		f.Close()
	}
}
