package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// The facts, which are what a source tells beside jobs; also the keys of the
// configuration that switch them off.
const (
	capacity  = "capacity"
	census    = "census"
	directory = "directory"
)

// maxFact bounds a fact in bytes: the daemon takes frames of up to 256 KiB.
const maxFact = 250 << 10

// tell sends the facts that are due, after the runs: what is wrong with them never
// holds up a record.
func (p *pass) tell(ctx context.Context, people []sdk.Person, queue counts) error {
	before := p.done.Told
	if p.due(census) {
		rows, err := queue.rows(maxFact)
		p.judge(census, err)
		p.batch.Census = &sdk.Census{At: p.done.Look, Rows: rows}
	}
	if p.due(directory) {
		p.judge(directory, p.tellDirectory(people))
	}
	if p.due(capacity) {
		err := p.tellCapacity(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.judge(capacity, err)
	}
	if p.done.Told != before {
		p.batch.Checkpoint = p.done.encode()
	}
	err := p.flush(ctx)
	if err != nil {
		clear(p.looked)
	}
	return err
}

// due reports whether to tell a fact now, and notes that it is told.
func (p *pass) due(name string) bool {
	every, wanted := p.config.facts[name]
	since, before := p.looked[name]
	now := p.now()
	passed := now.Sub(since)
	if !wanted || before && passed >= 0 && passed < every && p.listings > 1 {
		return false
	}
	p.looked[name] = now
	return true
}

// judge says what is wrong with something that is not needed for runs, once.
func (p *pass) judge(name string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && p.warned[name] != text {
		p.log.Warn(name+" cannot be told in full", "error", err)
	}
	p.warned[name] = text
}

// digest tells two facts apart.
func digest(fact any) string {
	text, err := json.Marshal(fact)
	if err != nil { // cannot be: texts and numbers
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// tellCapacity sends what the nodes have when that has changed.
func (p *pass) tellCapacity(ctx context.Context) error {
	nodes, err := p.nomad.Nodes(ctx)
	if err != nil {
		return err
	}
	p.nodes = map[string]nomad.Node{}
	for _, n := range nodes {
		p.nodes[n.ID] = n
	}
	components := p.config.filter.sum(nodes)
	if now := digest(components); now != p.done.Told.Capacity {
		p.done.Told.Capacity = now
		p.batch.Capacity = &sdk.Capacity{From: p.done.Look, Components: components}
	}
	return nil
}

// sum adds up what the nodes of the wanted pools have that are ready.
func (f *filter) sum(nodes []nomad.Node) []sdk.Amount {
	total := map[string]int64{"Cores": 0, "MHz": 0, "Memory": 0, "Disk": 0}
	for _, n := range nodes {
		if n.Status != "ready" || n.NodeResources == nil || !f.pools.take(n.NodePool) {
			continue
		}
		r := n.NodeResources
		total["Cores"] += r.Cpu.TotalCpuCores
		total["MHz"] += r.Cpu.CpuShares
		total["Memory"] += r.Memory.MemoryMB
		total["Disk"] += r.Disk.DiskMB
		for _, d := range r.Devices {
			if d.Type == "gpu" {
				total["GPUs"] += int64(len(d.Instances))
				total["GPUs:"+d.Name] += int64(len(d.Instances))
			}
		}
	}
	var out []sdk.Amount
	for _, name := range slices.Sorted(maps.Keys(total)) {
		out = append(out, sdk.Amount{Name: name, Amount: total[name]})
	}
	return out
}

// counts count the allocations of each user in each queue.
type counts map[[2]string]*sdk.CensusRow

func (c counts) add(j *nomad.JobStub, owner, queue string) {
	if j.JobSummary == nil {
		return
	}
	where := j.Namespace
	if queue == "node_pool" {
		where = j.NodePool
	}
	key := [2]string{j.Meta[owner], where}
	var runs, waits int64
	for _, g := range j.JobSummary.Summary {
		runs += g.Running + g.Unknown
		waits += g.Queued + g.Starting
	}
	if runs+waits == 0 {
		return
	}
	row := c[key]
	if row == nil {
		row = &sdk.CensusRow{User: key[0], Queue: key[1]}
		c[key] = row
	}
	row.Running += runs
	row.Pending += waits
}

// rows are the counts in order, in at most so many bytes: with the queues of a user
// together when they are more.
func (c counts) rows(most int) ([]sdk.CensusRow, error) {
	out := c.sorted()
	if censusSize(out) <= most {
		return out, nil
	}
	together := counts{}
	for _, r := range out {
		row := together[[2]string{r.User}]
		if row == nil {
			row = &sdk.CensusRow{User: r.User}
			together[[2]string{r.User}] = row
		}
		row.Running += r.Running
		row.Pending += r.Pending
	}
	out = together.sorted()
	if censusSize(out) <= most {
		return out, errors.New("users and queues are too many for one frame; the queues of a user are counted together")
	}
	var all sdk.CensusRow
	for _, r := range out {
		all.Running += r.Running
		all.Pending += r.Pending
	}
	return []sdk.CensusRow{all}, errors.New("the users are too many for one frame; they are counted together")
}

func (c counts) sorted() []sdk.CensusRow {
	out := make([]sdk.CensusRow, 0, len(c))
	for _, row := range c {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b sdk.CensusRow) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(a.Queue, b.Queue))
	})
	return out
}

func censusSize(rows []sdk.CensusRow) (n int) {
	for _, r := range rows {
		n += len(strings.ToValidUTF8(r.User, "\uFFFD")) + len(strings.ToValidUTF8(r.Queue, "\uFFFD")) + 40
	}
	return n
}

// person is the owner of a job; none when its meta names none.
func person(j *nomad.JobStub, keys run.Owner) []sdk.Person {
	id := j.Meta[keys.ID]
	if id == "" {
		return nil
	}
	return []sdk.Person{{User: id, Groups: []string{j.Namespace}, Name: j.Meta[keys.Name], Address: j.Meta[keys.Email]}}
}

// tellDirectory sends who owns jobs when that has changed. Who has owned one stays,
// though the job has gone.
func (p *pass) tellDirectory(people []sdk.Person) error {
	const name = "people"
	known := map[string]sdk.Person{}
	var before []sdk.Person
	if text := p.journal.Setting(name); len(text) > 0 {
		if err := json.Unmarshal(text, &before); err != nil {
			p.log.Warn("the people in the journal cannot be read; they are learned again", "error", err)
		}
	}
	for _, one := range append(before, people...) {
		old := known[one.User]
		one.Groups = append(slices.Clone(one.Groups), old.Groups...)
		slices.Sort(one.Groups)
		one.Groups = slices.Compact(one.Groups)
		one.Name, one.Address = cmp.Or(one.Name, old.Name), cmp.Or(one.Address, old.Address)
		known[one.User] = one
	}
	var all []sdk.Person
	for _, user := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[user])
	}
	if now := digest(all); len(all) == 0 || now == p.done.Told.Directory {
		return nil
	} else if size := directorySize(all); size > maxFact {
		return fmt.Errorf("the %d owners are too many for one frame; none are sent: give people to the aggregator as a CSV file, and set directory = false in the source's config block", len(all))
	} else {
		p.done.Told.Directory, p.batch.Directory = now, all
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return p.journal.Set(name, text)
}

func directorySize(people []sdk.Person) (n int) {
	for _, p := range people {
		n += len(p.User) + len(p.Name) + len(p.Address) + 24
		for _, g := range p.Groups {
			n += len(g) + 6
		}
	}
	return n
}
