package membership

import (
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// vote is the state of one member at an index of the log.
type vote struct {
	id    string
	hash  store.Hash
	voter bool
}

// verdict is what the states of the members at one index say.
type verdict struct {
	// right is the state of the majority of all voters; decided says that there
	// is one.
	right   store.Hash
	decided bool
	// wrong are the members whose state is not the right one, by id.
	wrong []string
	// split says that states differ and none has a majority.
	split bool
}

// judgeVotes compares the votes of members of a cluster that has that many voters.
// Only a state that more than half of all voters have, heard or not, is right.
func judgeVotes(voters int, votes []vote) verdict {
	count := map[store.Hash]int{}
	all := map[store.Hash]bool{}
	for _, v := range votes {
		all[v.hash] = true
		if v.voter {
			count[v.hash]++
		}
	}
	for hash := range maps.Keys(count) {
		if 2*count[hash] > voters {
			return verdict{right: hash, decided: true, wrong: differingNodes(votes, hash)}
		}
	}
	return verdict{split: len(all) > 1}
}

func differingNodes(votes []vote, right store.Hash) (ids []string) {
	for _, v := range votes {
		if v.hash != right {
			ids = append(ids, v.id)
		}
	}
	slices.Sort(ids)
	return ids
}
