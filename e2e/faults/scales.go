//go:build e2e

package faults

import (
	"fmt"
	"math/big"

	"github.com/bursar-accounting/bursar/proto/record"
)

// mostPriority is the priority of a site that has used all; that of one that has used
// nothing is 1.
const mostPriority = 65335

// priorityAction is an action that sets the priority of each of the schedulers' sites by
// what its jobs have used.
func priorityAction(program string, target *Target) *Armed {
	a := &Armed{Type: "priority", Label: "sites", Class: Set, Target: target, Nameless: true, Judge: (&scales{target}).judgePriorities}
	a.Block = fmt.Sprintf(`components = { Cores = "" }
  running    = false
  group_meta = "site_id"
  priority   = { min = 1, max = %d }
  timeout    = "2m"
  command    = [%q, "set", %q, %q, "{group}", "{priority}"]
  read {
    command = [%q, "get", %q, "{group}"]
    pattern = "value = ([0-9]+)"
  }
`, mostPriority, program, target.path, target.gatePath(), program, target.path)
	for i := range schedulerSites {
		a.Block += fmt.Sprintf("group \"site%d\" { }\n", i)
	}
	return a
}

// scales is what a scheduler has been told of priorities.
type scales struct{ target *Target }

// judgePriorities compares the last priorities with what the jobs have used.
func (s *scales) judgePriorities(_ *Member, truth Truth, _ []Run) error {
	used, sum := [schedulerSites]int64{}, int64(0)
	for _, j := range truth {
		if j.Stop != record.None {
			used[j.Cores%schedulerSites] += j.Usage()
			sum += j.Usage()
		}
	}
	all, err := s.target.Happened()
	if err != nil {
		return err
	}
	last := map[string]string{}
	for i := range all {
		last[all[i].Name] = all[i].Value
	}
	for i, v := range used {
		name, want := fmt.Sprint("site", i), priorityOfShare(v, sum)
		if last[name] != want {
			return fmt.Errorf("%w: the priority of %s is %s, should be %s", ErrNotYet, name, last[name], want)
		}
	}
	return nil
}

// priorityOfShare is the priority of who has used v of a sum, a half rounded upwards.
func priorityOfShare(v, sum int64) string {
	twice := new(big.Int).Mul(big.NewInt(2*(mostPriority-1)), big.NewInt(v))
	twice.Add(twice, big.NewInt(sum))
	twice.Div(twice, new(big.Int).Mul(big.NewInt(2), big.NewInt(sum)))
	return twice.Add(twice, big.NewInt(1)).String()
}
