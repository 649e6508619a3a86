package source

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// sumNodes adds up the nodes of the partitions that are wanted, under the names and in
// the units of the default mapping. GPUs of a model are GPUs:<model> too.
func (f *filter) sumNodes(nodes []cluster.Node) ([]sdk.Amount, error) {
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
		return nil, &facts.Remediable{Err: fmt.Errorf("none of the %d nodes is in the partitions %s", len(nodes), strings.Join(f.Partitions, ", ")),
			Remedy: "correct partitions in the source's config block"}
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

// addParts adds the cards of which jobs may have parts, in thousandths. The error names those
// that are left out, since it is not known how much of a card their slices are.
func (f *filter) addParts(to []sdk.Amount, nodes []cluster.Node) (all []sdk.Amount, unknown error) {
	sum := new(big.Rat)
	for i := range nodes {
		n := &nodes[i]
		if !setting.Among(f.Partitions, n.Partitions...) {
			continue
		}
		cards, err := n.Cards(n.IsSplit)
		if err != nil {
			unknown = fmt.Errorf("MilliGPUs lack node %s: %w", n.Name, err)
			continue
		}
		sum.Add(sum, cards)
	}
	if n, err := mig.Thousandths(sum); err == nil && n > 0 {
		to = append(to, sdk.Amount{Name: "MilliGPUs", Amount: n})
	}
	return to, unknown
}

// wantsNow applies the filter to a job of the queue. One that waits for several
// partitions is wanted when one of them is.
func (f *filter) wantsNow(j *cluster.Job) bool {
	return setting.Among(f.Partitions, strings.Split(j.Partition, ",")...) && setting.Among(f.Users, j.User, j.UID) &&
		setting.Among(f.Groups, j.Group, j.GID) && setting.Among(f.Accounts, j.Account)
}

// listPeople lists users with the accounts that they may charge, of those that are
// wanted; users and accounts in order.
func (f *filter) listPeople(list []cluster.Association) []sdk.Person {
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
