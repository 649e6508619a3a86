package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// sum adds up the nodes of the partitions that are wanted, under the names and in
// the units of the default mapping. GPUs of a model are GPUs:<model> too.
func (f *filter) sum(nodes []cluster.Node) ([]sdk.Amount, error) {
	var cores, memory, gpus int64
	models := map[string]int64{}
	some := false
	for _, n := range nodes {
		if !setting.Among(f.Partitions, n.Partitions...) {
			continue
		}
		some = true
		cores += n.Cores
		memory += n.MemoryMB
		for model, count := range n.GPUs {
			gpus += count
			models[model] += count
		}
	}
	if !some {
		return nil, &remediable{fmt.Errorf("none of the %d nodes is in the partitions %s", len(nodes), strings.Join(f.Partitions, ", ")),
			"correct partitions in the source's config block"}
	}
	out := []sdk.Amount{{Name: "Cores", Amount: cores}, {Name: "Memory", Amount: memory}}
	if gpus > 0 {
		out = append(out, sdk.Amount{Name: "GPUs", Amount: gpus})
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		if model != "" && models[model] > 0 {
			out = append(out, sdk.Amount{Name: "GPUs:" + model, Amount: models[model]})
		}
	}
	return out, nil
}

// wantsNow applies the filter to a job of the queue. One that waits for several
// partitions is wanted when one of them is.
func (f *filter) wantsNow(j *cluster.Job) bool {
	return setting.Among(f.Partitions, strings.Split(j.Partition, ",")...) && setting.Among(f.Users, j.User, j.UID) &&
		setting.Among(f.Groups, j.Group, j.GID) && setting.Among(f.Accounts, j.Account)
}

// counts are jobs by user and queue.
type counts map[place]*sdk.CensusRow

type place struct{ user, queue string }

func (c counts) add(j *cluster.Job) {
	row := c.at(place{j.User, j.Partition})
	if j.Running {
		row.Running++
	} else {
		row.Pending++
	}
}

func (c counts) at(p place) *sdk.CensusRow {
	if c[p] == nil {
		c[p] = &sdk.CensusRow{User: p.user, Queue: p.queue}
	}
	return c[p]
}

// fold counts together what has the same place after change.
func (c counts) fold(change func(place) place) counts {
	out := counts{}
	for p, row := range c {
		into := out.at(change(p))
		into.Running += row.Running
		into.Pending += row.Pending
	}
	return out
}

// rows returns the counts in at most so many bytes. When they are more, the queues
// of each user are counted together, and the users of each queue when that is not
// enough; the error says so. Sums stay right.
func (c counts) rows(most int) ([]sdk.CensusRow, error) {
	byUser := func(p place) place { return place{user: p.user} }
	byQueue := func(p place) place { return place{queue: p.queue} }
	all := func(place) place { return place{} }
	if c.size() <= most {
		return c.sorted(), nil
	}
	if users := c.fold(byUser); users.size() <= most {
		return users.sorted(), crowded("the queues of each user are counted together")
	}
	if queues := c.fold(byQueue); queues.size() <= most {
		return queues.sorted(), crowded("the users of each queue are counted together")
	}
	return c.fold(all).sorted(), crowded("all jobs are counted together")
}

func crowded(what string) error {
	return &remediable{errors.New("it is too large for one frame: " + what), "leave it, or choose partitions or accounts in the source's config block"}
}

// rowOverhead is what a row or a text takes on the wire beside texts, at most.
const rowOverhead = 32

func (c counts) size() (n int) {
	for p := range c {
		n += wireLen(p.user) + wireLen(p.queue) + rowOverhead
	}
	return n
}

// wireLen is the length of s as it is sent: bytes that are no UTF-8 are replaced.
func wireLen(s string) int { return len(strings.ToValidUTF8(s, "\uFFFD")) }

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

// people lists users with the accounts that they may charge, of those that are
// wanted; users and accounts in order.
func (f *filter) people(list []cluster.Association) []sdk.Person {
	accounts := map[string][]string{}
	for _, a := range list {
		if setting.Among(f.Accounts, a.Account) {
			accounts[a.User] = append(accounts[a.User], a.Account)
		}
	}
	out := make([]sdk.Person, 0, len(accounts))
	for _, user := range slices.Sorted(maps.Keys(accounts)) {
		groups := accounts[user]
		slices.Sort(groups)
		out = append(out, sdk.Person{User: user, Groups: slices.Compact(groups)})
	}
	return out
}

// byCSV is the remedy for a directory that one frame does not hold.
const byCSV = "give people to the aggregator as a CSV file, and set directory = false in the source's config block"

// fit returns people in at most so many bytes: without names when they are more,
// and none when that is not enough, since part of a directory would say that the
// others have left. The error says so.
func fit(people []sdk.Person, most int) ([]sdk.Person, error) {
	if sizeOf(people) <= most {
		return people, nil
	}
	bare := slices.Clone(people)
	for i := range bare {
		bare[i].Name = ""
	}
	if sizeOf(bare) <= most {
		return bare, &remediable{fmt.Errorf("the %d users are too many for one frame with their names, which are left out", len(people)),
			"set names = false in the source's config block, or " + byCSV}
	}
	return nil, &remediable{fmt.Errorf("the %d users are too many for one frame; none are sent", len(people)), byCSV}
}

func sizeOf(people []sdk.Person) (n int) {
	const text = 6 // a tag and a length
	for _, p := range people {
		n += wireLen(p.User) + wireLen(p.Name) + 3*text
		for _, g := range p.Groups {
			n += wireLen(g) + text
		}
	}
	return n
}
