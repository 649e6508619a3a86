package field

import (
	"fmt"
	"strconv"
	"strings"
)

// JobID is an id as sacct shows it: 7, 7_3 (array task), 7_[1-4,9%2] (tasks that
// have not started), 7+1 (part of a heterogeneous job), each with .batch,
// .extern, .interactive, .0 or .0+1 for a step.
type JobID struct {
	Job    string // without the step
	Step   string // "" for the job itself
	Number int64  // of the job, the array or the heterogeneous job
	Task   int64  // of an array; -1 when there is none
	Offset int64  // in a heterogeneous job; -1 when there is none
	Range  bool   // several tasks that have not started
}

// ParseJobID reads a job id.
func ParseJobID(s string) (JobID, error) {
	id := JobID{Task: -1, Offset: -1}
	job, step, stepped := cutStep(s)
	id.Job, id.Step = job, step
	number, rest := splitDigits(job)
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || (stepped && step == "") || !id.readSuffix(rest) {
		return JobID{}, fmt.Errorf("%q is not a job id", s)
	}
	id.Number = n
	return id, nil
}

// readSuffix takes what follows the job number.
func (id *JobID) readSuffix(rest string) bool {
	switch {
	case rest == "":
		return true
	case strings.HasPrefix(rest, "_["):
		id.Range = true
		return strings.HasSuffix(rest, "]")
	case rest[0] == '_':
		return parseIndex(rest[1:], &id.Task)
	case rest[0] == '+':
		return parseIndex(rest[1:], &id.Offset)
	}
	return false
}

func parseIndex(s string, to *int64) bool {
	number, rest := splitDigits(s)
	n, err := strconv.ParseInt(number, 10, 64)
	*to = n
	return err == nil && rest == ""
}

// cutStep cuts at the first dot outside of brackets.
func cutStep(s string) (job, step string, found bool) {
	from := 0
	if i := strings.IndexByte(s, ']'); i >= 0 {
		from = i
	}
	job, step, found = strings.Cut(s[from:], ".")
	return s[:from] + job, step, found
}

func splitDigits(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
