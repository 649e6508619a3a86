package job

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
)

// Key names a run in slurmdbd: no two rows of a cluster share job id and time of
// submission.
type Key struct {
	Cluster string
	Raw     int64 // JobIDRaw; each array task has one of its own
	Submit  int64 // seconds since the epoch; a requeued run has a new one
}

// Run is one row of a job with what its steps add.
type Run struct {
	Key
	ID       field.JobID
	State    field.State
	Start    time.Time // zero: it did not start
	End      time.Time // zero: it goes on
	Restarts int64     // 0 also where this Slurm does not tell, or it cannot be read

	// Later says that the job had an earlier run. Set it before Name or Values
	// are asked for.
	Later bool
	// Qualified puts the cluster into Name.
	Qualified bool

	plan   *Plan
	fields []string
	steps  steps
	// summary is nil until a value of it is asked for.
	summary *summary
}

// IsStep reports whether a row belongs to a step, and returns the raw id of its
// job.
func (p *Plan) IsStep(fields []string) (raw string, step bool) {
	id := fields[0]
	for i := 0; i < len(id); i++ {
		if id[i] == '.' {
			return id[:i], true
		}
	}
	return id, false
}

// Run reads a job's row, whose fields it keeps.
func (p *Plan) Run(fields []string) (*Run, error) {
	r := &Run{plan: p, fields: fields}
	raw, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || raw < 0 {
		return r, fmt.Errorf("JobIDRaw: %q is not a job id", fields[0])
	}
	r.Raw = raw
	r.Cluster, _ = r.textOf("Cluster")
	err = r.readColumns()
	if r.ID.Step != "" {
		return r, fmt.Errorf("JobID: %q is the id of a step, JobIDRaw %d is not", r.fields[1], raw)
	}
	return r, err
}

// Lost is a run that slurmdbd no longer has, as far as it is remembered.
func (p *Plan) Lost(key Key, jobID string, start int64) (*Run, error) {
	return p.Run(p.Fields(map[string]string{
		"JobIDRaw": strconv.FormatInt(key.Raw, 10), "JobID": jobID, "Cluster": key.Cluster, "State": "UNKNOWN",
		"Submit": strconv.FormatInt(key.Submit, 10), "Start": strconv.FormatInt(start, 10), "End": "Unknown",
	}))
}

// Told is a run that slurmdbd does not have, from what someone else says of it by
// column. Its time of submission need not be known.
func (p *Plan) Told(values map[string]string) (*Run, error) {
	r, err := p.Run(p.Fields(values))
	if errors.Is(err, errNoSubmit) {
		return r, nil
	}
	return r, err
}

// Fields makes the fields of a row from values by column.
func (p *Plan) Fields(values map[string]string) []string {
	fields := make([]string, len(p.Columns))
	for column, value := range values {
		if i, ok := p.index[column]; ok {
			fields[i] = value
		}
	}
	return fields
}

// With returns the run's row with other values in some columns.
func (r *Run) With(values map[string]string) []string {
	fields := slices.Clone(r.fields)
	for column, value := range values {
		if i, ok := r.plan.index[column]; ok {
			fields[i] = value
		}
	}
	return fields
}

// Incomplete reports whether slurmdbd never heard of the run's start, as far as it can
// be told: see [Run.Half]. Its name may be another one later.
func (r *Run) Incomplete() bool {
	partition, known := r.textOf("Partition")
	return known && partition == ""
}

// Named is the run as it would be if Name had returned name.
func (r *Run) Named(name string) (*Run, error) {
	jobID, submit, later := strings.Cut(name, "-")
	values := map[string]string{"JobID": jobID}
	if later {
		values["Submit"] = submit
	}
	out, err := r.plan.Run(r.With(values))
	out.Qualified, out.Later = r.Qualified, later
	return out, err
}

var errNoSubmit = errors.New("column Submit: there is none")

func (r *Run) readColumns() (err error) {
	if r.ID, err = field.ParseJobID(r.fields[1]); err != nil {
		return fmt.Errorf("column JobID: %w", err)
	}
	if r.State, err = field.ParseState(r.fields[2]); err != nil {
		return fmt.Errorf("column State: %w", err)
	}
	submit, err := r.timeOf("Submit")
	if err != nil {
		return err
	}
	if !submit.IsZero() {
		r.Submit = submit.Unix()
	}
	if r.Start, err = r.timeOf("Start"); err != nil {
		return err
	}
	if r.End, err = r.timeOf("End"); err != nil {
		return err
	}
	r.Restarts, _, _ = r.countOf("Restarts") // where it cannot be read, other rows of the job tell
	if r.Submit == 0 {
		return errNoSubmit
	}
	if r.ID.Range && !r.Start.IsZero() && r.nodesTold() == someNodes {
		return fmt.Errorf("column JobID: %q are array tasks that have not started, and the row has a start and nodes: "+
			"it is not known how many tasks ran; look at sacct --array -j %d", r.ID.Job, r.ID.Number)
	}
	return nil
}

// Started reports whether the run had resources. A job that was cancelled while
// it waited has no start, or one that is its end, or, where slurmctld had set a start that
// did not come about, one before its end; it has no nodes. A row that is not complete, or
// that ended in a state that only what ran can end in, is no such job.
func (r *Run) Started() bool {
	if r.Start.IsZero() || r.State.Word == "PENDING" || r.ID.Range {
		return false
	}
	if r.End.IsZero() || !r.End.Equal(r.Start) && (!r.endedWaiting() || r.Incomplete()) {
		return true
	}
	return r.nodesTold() != noNodes
}

// endedWaiting reports whether the run ended in a state in which a waiting job can end.
func (r *Run) endedWaiting() bool {
	return slices.Contains([]string{"CANCELLED", "DEADLINE", "REVOKED"}, r.State.Word)
}

// What a row tells of a run's nodes.
type nodesTold uint8

const (
	unknownNodes nodesTold = iota
	noNodes
	someNodes
)

// nodesTold reads whether the run has, or had, nodes. Slurm writes "None assigned" for a
// job without any, also where another column has the number that was asked for.
func (r *Run) nodesTold() nodesTold {
	if r.Text("NodeList") == "None assigned" {
		return noNodes
	}
	nodes, known, err := r.countOf("AllocNodes")
	tres, told := r.textOf("AllocTRES")
	switch {
	case err != nil || !known || !told && nodes == 0:
		return unknownNodes
	case nodes > 0 || tres != "":
		return someNodes
	}
	return noNodes
}

// Half reports whether slurmdbd may not know yet what the run's id depends on. When
// it is told of the end or of a step before it is told of the start, which happens
// with short jobs, it makes a row with what that says: without a partition, which
// every job has, and without its place in an array. Soon after, the start is told;
// a row that stays as it is for long will not change any more.
func (r *Run) Half(now time.Time) bool {
	if !r.Incomplete() {
		return false
	}
	at := r.End
	if at.IsZero() {
		at = r.Start
	}
	return !at.IsZero() && now.Sub(at) < halfKnown
}

// halfKnown is how long slurmdbd may take to hear of a start after it heard of the
// rest.
const halfKnown = 10 * time.Minute

// Ended reports whether the run is over.
func (r *Run) Ended() bool { return !r.End.IsZero() }

// Name is the run's id, a function of the run alone: the job's id for the first
// run, followed by the time of submission for later ones.
func (r *Run) Name() string {
	name := r.ID.Job
	if r.Later {
		name = fmt.Sprintf("%s-%d", name, r.Submit)
	}
	return name
}

// RunName is Name, with the cluster before it where several are collected.
func (r *Run) RunName() string {
	if r.Qualified {
		return r.Cluster + "/" + r.Name()
	}
	return r.Name()
}

// Text returns a column of the job's row, and "" when this sacct has none.
func (r *Run) Text(column string) string { s, _ := r.textOf(column); return s }

func (r *Run) textOf(column string) (string, bool) { return r.plan.getField(r.fields, column) }

func (p *Plan) getField(fields []string, column string) (string, bool) {
	if i, ok := p.index[column]; ok {
		return fields[i], true
	}
	return "", false
}

func (r *Run) timeOf(column string) (time.Time, error) {
	s, _ := r.textOf(column)
	t, err := field.Time(s)
	if err != nil {
		return t, fmt.Errorf("%s: %w", column, err)
	}
	return t, nil
}

func (r *Run) countOf(column string) (n int64, known bool, err error) {
	s, _ := r.textOf(column)
	if n, known, err = field.Count(s); err != nil {
		return 0, false, fmt.Errorf("%s: %w", column, err)
	}
	return n, known, nil
}

func (r *Run) sizeOf(column string) (n int64, known bool, err error) {
	if n, known, err = field.Size(r.Text(column)); err != nil {
		return 0, false, fmt.Errorf("%s: %w", column, err)
	}
	return n, known, nil
}

func (r *Run) durationOf(column string) (m field.Micros, known bool, err error) {
	s, _ := r.textOf(column)
	if m, known, err = field.Duration(s); err != nil {
		return 0, false, fmt.Errorf("%s: %w", column, err)
	}
	return m, known, nil
}

func (r *Run) tresOf(column string) ([]field.Resource, error) {
	s, _ := r.textOf(column)
	list, err := field.TRES(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", column, err)
	}
	return list, nil
}

// Size estimates the memory that the run takes, in bytes.
func (r *Run) Size() int {
	n := 512
	for _, f := range r.fields {
		n += len(f) + 32
	}
	return n
}

// Show writes the run's row for people.
func (r *Run) Show() []byte { return r.plan.Show(r.fields) }

// Show writes a row for people, a column a line.
func (p *Plan) Show(fields []string) []byte {
	var out []byte
	for i, f := range fields {
		if f != "" && i < len(p.Columns) && len(out) < 64<<10 {
			out = fmt.Appendf(out, "%s=%s\n", p.Columns[i], f)
		}
	}
	return out
}
