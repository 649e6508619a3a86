package field

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// State is the state of a job or step.
type State struct {
	Word string // for example COMPLETED
	By   int64  // the uid that cancelled it; -1 when not said
}

// ParseState reads a state, also in the form "CANCELLED by 1002".
func ParseState(s string) (State, error) {
	word, rest, _ := strings.Cut(s, " ")
	word = strings.TrimSuffix(word, "+")
	state := State{Word: word, By: -1}
	if word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return State{}, fmt.Errorf("%q is not a state", s)
	}
	if uid, found := strings.CutPrefix(rest, "by "); found {
		if n, err := strconv.ParseInt(uid, 10, 64); err == nil && n >= 0 {
			state.By = n
		}
	}
	return state, nil
}

// EndStates are the states in which a run can end, with sacct's short names.
func EndStates() map[string]string {
	return map[string]string{
		"BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "DL": "DEADLINE", "F": "FAILED",
		"NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PR": "PREEMPTED", "RQ": "REQUEUED",
		"RS": "RESIZING", "RV": "REVOKED", "TO": "TIMEOUT",
	}
}

// EndState returns the long name of an end state that is given by its long or
// short name in any case.
func EndState(s string) (string, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	all := EndStates()
	if long, ok := all[s]; ok {
		return long, true
	}
	for _, long := range all {
		if long == s {
			return long, true
		}
	}
	return "", false
}

// EndStateNames returns the long names of all end states, sorted.
func EndStateNames() []string {
	var names []string
	for _, long := range EndStates() {
		names = append(names, long)
	}
	slices.Sort(names)
	return names
}

// Exit reads an exit code as Slurm writes it, "code:signal". Known is false when
// nothing is there.
func Exit(s string) (code, signal int64, known bool, err error) {
	if s == "" {
		return 0, 0, false, nil
	}
	c, sig, found := strings.Cut(s, ":")
	code, errCode := strconv.ParseInt(c, 10, 32)
	signal, errSignal := strconv.ParseInt(sig, 10, 32)
	if !found || errCode != nil || errSignal != nil || code < 0 || signal < 0 {
		return 0, 0, false, fmt.Errorf("%q is not an exit code", s)
	}
	return code, signal, true, nil
}
