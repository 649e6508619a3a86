package setting

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Filter says which runs are wanted. An empty list wants all.
type Filter struct {
	Partitions, Users, Groups, Accounts []string
	States                              []string // end states, long names
}

// ReadFilter reads partitions, users, groups, accounts and states.
func ReadFilter(cfg *sdk.Config) Filter {
	f := Filter{
		Partitions: Names(cfg, "partitions"), Users: Names(cfg, "users"),
		Groups: Names(cfg, "groups"), Accounts: Names(cfg, "accounts"),
	}
	for i, s := range cfg.Strings("states", nil) {
		state, ok := field.EndState(s)
		if !ok {
			cfg.ElementErrorf("states", i, "%q is no state in which a job ends; known are %s (running jobs are kept with running = true)",
				s, strings.Join(field.EndStateNames(), ", "))
		}
		f.States = append(f.States, state)
	}
	return f
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
