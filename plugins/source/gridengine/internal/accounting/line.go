package accounting

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The columns, counted from 0.
const (
	qname = iota
	hostname
	group
	owner
	jobName
	jobNumber
	account
	priority
	submissionTime
	startTime
	endTime
	failed
	exitStatus
	ruWallclock
	ruUtime
	ruStime
	ruMaxrss
	ruIxrss
	ruIsmrss
	ruIdrss
	ruIsrss
	ruMinflt
	ruMajflt
	ruNswap
	ruInblock
	ruOublock
	ruMsgsnd
	ruMsgrcv
	ruNsignals
	ruNvcsw
	ruNivcsw
	project
	department
	grantedPE
	slots
	taskNumber
	cpu
	mem
	io
	category
	iow
	peTaskID
	maxvmem
	arid // the last two since 6.2
	arSubmissionTime
	jobClass // Univa's and Altair's
	qdelInfo
	maxrss
	maxpss
	submitHost
	cwd
	submitCmd
	wallclock
	ioops
	known // how many columns have a name

	least = arid // columns that every line has
	most  = 128  // columns that a line may have
)

// none is how Grid Engine writes that there is nothing.
const none = "NONE"

// ErrNotRun is why a line that was read is no run.
var (
	ErrBlank        = errors.New("a blank line")
	ErrComment      = errors.New("a comment")
	ErrNeverStarted = errors.New("the job never started")
)

// Line is a line that tells of a run.
type Line struct {
	Cell string // "" where there is only one

	Job   int64
	Task  int64 // of an array; 0 for other jobs
	Start time.Time
	End   time.Time

	failed int64 // why the run failed, 0 when it did not
	exit   int64 // exit status
	slots  int64
	unread map[int]error // why columns of the three cannot be read; nil: all can

	fields   [known]string
	count    int      // of columns that the line has
	extra    []string // columns beyond the known ones
	millis   bool     // its times are in milliseconds
	requests map[string]string
}

// Parse reads a line without its newline. The errors ErrBlank, ErrComment and
// ErrNeverStarted say that there is no run; with any other error the line cannot be
// read, and what is returned has as much of the run as can be known.
func Parse(text string) (*Line, error) {
	l := new(Line)
	return l, l.Parse(text)
}

// Parse is the function Parse into a line that is there; what it held is gone.
func (l *Line) Parse(text string) error {
	*l = Line{}
	switch {
	case strings.TrimSpace(text) == "":
		return ErrBlank
	case text[0] == '#':
		return ErrComment
	case text[0] == '{':
		return errors.New("it is JSON, which is not read; with old_accounting=true in reporting_params (sge_conf) qmaster writes lines that are")
	}
	if err := l.splitColumns(strings.TrimSuffix(text, "\r")); err != nil {
		return err
	}
	return l.readRequired()
}

// splitColumns cuts the line at its colons.
func (l *Line) splitColumns(rest string) error {
	for l.count = 1; ; l.count++ {
		field, after, more := strings.Cut(rest, ":")
		if l.count <= known {
			l.fields[l.count-1] = field
		} else {
			l.extra = append(l.extra, field)
		}
		if !more {
			break
		}
		if rest = after; l.count == most {
			return fmt.Errorf("it has more than %d columns", most)
		}
	}
	if l.count < least {
		return fmt.Errorf("it has %d columns instead of %d or more", l.count, least)
	}
	return nil
}

// readRequired reads what every run has. Where a name has a colon in it the columns are
// shifted, and this fails.
func (l *Line) readRequired() error {
	var err error
	number := func(column int) (n int64) {
		if err == nil {
			if n, err = parseInteger(l.fields[column]); err != nil {
				err = fmt.Errorf("column %s: %w", Name(column), err)
			}
		}
		return n
	}
	l.Job, l.Task = number(jobNumber), number(taskNumber)
	start, end := number(startTime), number(endTime)
	if err == nil {
		err = l.shiftError()
	}
	if err != nil {
		return err
	}
	l.failed, l.exit, l.slots = l.optionalInt(failed), l.optionalInt(exitStatus), l.optionalInt(slots)
	l.millis = max(start, end) >= firstMilli
	l.Start, l.End = l.toTime(start), l.toTime(end)
	switch {
	case start == 0:
		return ErrNeverStarted
	case end == 0:
		return errors.New("column end_time: the run has a start and no end")
	case max(start, end) > lastTime:
		return errors.New("its times are no times of this age")
	}
	return nil
}

// shiftError returns an error where columns are shifted: a colon in a text moves at least two
// of the columns behind it to where they cannot be. One alone is just not readable.
func (l *Line) shiftError() (first error) {
	signs := 0
	for _, column := range []int{slots, iow, maxvmem, arid, arSubmissionTime} {
		if s := l.fields[column]; s != "" {
			if _, err := parseDecimal(s); err != nil {
				signs++
				first = cmp.Or(first, fmt.Errorf("column %s: %w", Name(column), err))
			}
		}
	}
	if _, err := parseDecimal(l.fields[peTaskID]); err == nil {
		signs++ // a slave task has the name of its host, too
	}
	if signs < 2 {
		return nil
	}
	return first
}

// optionalInt reads a column without which the run can be told.
func (l *Line) optionalInt(column int) int64 {
	n, err := parseInteger(l.fields[column])
	if err != nil {
		if l.unread == nil {
			l.unread = map[int]error{}
		}
		l.unread[column] = fmt.Errorf("column %s: %w", Name(column), err)
	}
	return n
}

// readError returns why one of the columns that [Line.optionalInt] reads cannot be read.
func (l *Line) readError(columns ...int) error {
	for _, c := range columns {
		if err := l.unread[c]; err != nil {
			return err
		}
	}
	return nil
}

// firstMilli tells seconds from milliseconds: as seconds it is the year 5138, as
// milliseconds it is March 1973.
const firstMilli = 100_000_000_000

// lastTime is the end of the year 9999 in milliseconds.
const lastTime = 253402300799999

func (l *Line) toTime(n int64) time.Time {
	switch {
	case n == 0:
		return time.Time{}
	case l.millis:
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// fieldOrEmpty returns a column, and "" where there is nothing in it.
func (l *Line) fieldOrEmpty(column int) string {
	if s := l.fields[column]; s != none {
		return s
	}
	return ""
}

// IsSlave reports whether the line is of a task of a parallel job that the job
// started on its hosts (qrsh -inherit). The line of the job itself, which has no
// pe_taskid, tells the slots of all.
func (l *Line) IsSlave() bool { return l.fieldOrEmpty(peTaskID) != "" }

// ID names the run: job, array task, start, and task of a parallel job. It follows
// from the line alone, and keeps reruns of a job and jobs of the same number apart.
// The start is as it is written: in seconds or milliseconds.
func (l *Line) ID() string {
	var b strings.Builder
	b.Grow(48)
	b.WriteString(l.fields[jobNumber])
	if l.Task > 0 {
		b.WriteByte('.')
		b.WriteString(l.fields[taskNumber])
	}
	b.WriteByte('-')
	b.WriteString(l.fields[startTime])
	if l.IsSlave() {
		b.WriteByte('-')
		b.WriteString(l.fieldOrEmpty(peTaskID))
	}
	return b.String()
}

// QualifiedID is ID with the cell before it where there are several.
func (l *Line) QualifiedID() string {
	if l.Cell == "" {
		return l.ID()
	}
	return l.Cell + "-" + l.ID()
}

// The columns that a site chooses by.

// Queue is the queue that the run was in.
func (l *Line) Queue() string { return l.fieldOrEmpty(qname) }

// Host is the host that the run, or its master, was on.
func (l *Line) Host() string { return l.fieldOrEmpty(hostname) }

// Owner is the user.
func (l *Line) Owner() string { return l.fieldOrEmpty(owner) }

// Group is the Unix group of the user.
func (l *Line) Group() string { return l.fieldOrEmpty(group) }

// Project is the project; "" for none.
func (l *Line) Project() string { return l.fieldOrEmpty(project) }

// Department is the department; "" for none.
func (l *Line) Department() string { return l.fieldOrEmpty(department) }
