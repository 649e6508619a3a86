package setting

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Filter says which runs are wanted. An empty list wants all.
type Filter struct {
	Partitions hcl.Strings `hcl:"partitions,optional" unset:"all" doc:"only jobs in these partitions"`
	Users      hcl.Strings `hcl:"users,optional" unset:"all" doc:"only jobs of these users, by name or number"`
	Groups     hcl.Strings `hcl:"groups,optional" unset:"all" doc:"only jobs of these groups, by name or number"`
	Accounts   hcl.Strings `hcl:"accounts,optional" unset:"all" doc:"only jobs of these accounts"`
	States     hcl.Strings `hcl:"states,optional" unset:"all" doc:"only runs that end in these states, by long or short name in any case: BOOT_FAIL, CANCELLED, COMPLETED, DEADLINE, FAILED, NODE_FAIL, OUT_OF_MEMORY, PREEMPTED, REQUEUED, RESIZING, REVOKED, TIMEOUT"`
}

// Check reports names that are none, and gives states their long names.
func (f *Filter) Check(cfg *sdk.Config) {
	checkNames(cfg, "partitions", f.Partitions)
	checkNames(cfg, "users", f.Users)
	checkNames(cfg, "groups", f.Groups)
	checkNames(cfg, "accounts", f.Accounts)
	for i, s := range f.States {
		state, ok := field.EndState(s)
		if !ok {
			cfg.ElementErrorf("states", i, "%q is not a state in which a job ends; known are %s (running jobs are kept with running = true)",
				s, strings.Join(field.EndStateNames(), ", "))
		}
		f.States[i] = state
	}
}

// Wants applies the filter. The state counts only of a run that has ended.
func (f *Filter) Wants(r *job.Run) bool {
	return Among(f.Partitions, r.Text("Partition")) && Among(f.Users, r.Text("User"), r.Text("UID")) &&
		Among(f.Groups, r.Text("Group"), r.Text("GID")) && Among(f.Accounts, r.Text("Account")) &&
		(!r.Ended() || Among(f.States, r.State.Word))
}

// Among reports whether one of the values is in the list, which may be empty: then
// all are.
func Among(list []string, values ...string) bool {
	return len(list) == 0 || slices.ContainsFunc(values, func(v string) bool { return v != "" && slices.Contains(list, v) })
}
