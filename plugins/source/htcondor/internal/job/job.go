package job

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	spelling "github.com/bursar-accounting/bursar/proto/text"
)

// Job is a run of a job, from one ad. Load fills it.
type Job struct {
	GlobalID   string
	Owner      string
	Start, End time.Time // End is zero of a run that goes on
	Epoch      bool      // from an epoch: what became of the job afterwards is not known
	Finished   time.Time

	ad     *classad.Ad
	index  *index
	fields []string // texts of the columns; "" where the ad has none
	began  int64    // start of the job's first run; 0: unknown

	unsure error // a column was taken as if the ad had none of it, since it cannot be read; see Sure

	universes map[int64]string
}

// Reasons why an ad is not a run.
var (
	ErrNeverRan   = errors.New("the job never ran")
	ErrNotJob     = errors.New("the ad is of a whole submission")
	ErrOtherEpoch = errors.New("the epoch is not of the end of a run")
)

// New makes a job to load ads into.
func New() *Job {
	return &Job{index: newIndex(), fields: make([]string, len(allColumns())), universes: universeNames()}
}

// Load makes j the run that the ad tells of. The error is one of those above where the ad
// is right and tells of none. GlobalID is known whenever the ad has it. J refers to ad.
func (j *Job) Load(ad *classad.Ad, epoch bool) error {
	*j = Job{index: j.index, fields: j.fields, universes: j.universes, ad: ad, Epoch: epoch}
	clear(j.fields)
	for i := range ad.Attributes {
		a := &ad.Attributes[i]
		if c := j.index.findColumn(a.Name); c >= 0 {
			j.fields[c] = a.Text
		}
	}
	j.GlobalID, j.Owner = j.columnText(globalJobID), j.columnText(owner)
	if j.GlobalID == "" {
		return errors.New("the ad has no GlobalJobId")
	}
	return j.readTimes()
}

// readTimes reads when the run and the job's first one began, and when the run ended.
func (j *Job) readTimes() error {
	start, err := j.firstSet(jobCurrentStartDate, shadowBday, jobStartDate)
	first, wrong := j.positiveNumber(jobStartDate)
	status, unknown := j.positiveNumber(jobStatus)
	if j.Epoch {
		unknown = nil // it says nothing of an epoch
	}
	j.Finished = unixTime(max(j.numberAt(enteredCurrentStatus), j.numberAt(jobFinishedHookDone)))
	j.unsure = nil
	switch {
	case strings.HasPrefix(j.fields[procID], "-"):
		return ErrNotJob
	case errors.Join(err, wrong, unknown) != nil:
		return errors.Join(err, wrong, unknown)
	case start == 0:
		return ErrNeverRan
	}
	j.Start, j.began = unixTime(start), first
	if !j.Epoch && status != removed && status != completed {
		return nil // it runs
	}
	// What was written for an earlier run stays in the ad, and is before the start.
	for _, c := range []int{completionDate, lastVacateTime, epochWriteDate, enteredCurrentStatus} {
		at, err := j.positiveNumber(c)
		if err != nil {
			return err
		}
		if at >= start {
			j.End = unixTime(at)
			return nil
		}
	}
	return fmt.Errorf("none of CompletionDate, LastVacateTime, EpochWriteDate and EnteredCurrentStatus is behind the start, %s", j.Start.Format(time.RFC3339))
}

// The numbers of JobStatus.
const (
	idle = iota + 1
	running
	removed
	completed
	held
	transferring
	suspended
)

// lastTime is the last second of the year 9999.
const lastTime = 253402300799

func unixTime(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// positiveNumber is a number above 0; 0 where the ad has none.
func (j *Job) positiveNumber(c int) (int64, error) {
	n, known, err := j.wholeNumber(c)
	if err != nil || !known || n < 0 || n > lastTime {
		return 0, err
	}
	return n, nil
}

// firstSet is the first of the columns that is set. What stands behind it need not be
// readable.
func (j *Job) firstSet(columns ...int) (n int64, err error) {
	for _, c := range columns {
		if n, err = j.positiveNumber(c); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// Sure calls f, and returns why what it tells of the job is not sure: a column that it asks
// for cannot be read.
func (j *Job) Sure(f func()) error {
	j.unsure = nil
	f()
	return j.unsure
}

// noteUnreadable notes that a column cannot be read.
func (j *Job) noteUnreadable(c int) {
	if j.unsure == nil {
		j.unsure = j.unreadableError(c)
	}
}

func (j *Job) unreadableError(c int) error {
	want := "number"
	if j.index.kinds[c] == flag {
		want = "truth value"
	}
	return fmt.Errorf("%s is %.80s, not a %s", j.index.names[c], j.fields[c], want)
}

// ID names the run: the job, and behind it the second of the start when the run is not the
// job's first. It is "" while the ad does not tell the job or the start.
func (j *Job) ID() string {
	switch {
	case j.GlobalID == "" || j.Start.IsZero():
		return ""
	case j.Start.Unix() == j.began:
		return j.GlobalID
	}
	return j.GlobalID + "-" + strconv.FormatInt(j.Start.Unix(), 10)
}

// IsIdentified reports whether the ad has all that tells which run of which job it is.
func (j *Job) IsIdentified() bool { return j.ID() != "" && j.began > 0 }

// columnText is the text of a column.
func (j *Job) columnText(c int) string {
	t := j.fields[c]
	if t == "" {
		return ""
	}
	if n := len(t) - 1; n > 0 && t[0] == '"' && t[n] == '"' && strings.IndexByte(t[1:n], '"') < 0 {
		return t[1:n] // as nearly all are
	}
	return valueText(classad.Parse(t))
}

// valueText is a value as text; "" of what is not known.
func valueText(v classad.Value) string {
	switch v.Kind {
	case classad.String, classad.Expression:
		return v.Text
	case classad.Int:
		return strconv.FormatInt(v.Int, 10)
	case classad.Real:
		return strconv.FormatFloat(v.Real, 'g', -1, 64)
	case classad.Bool:
		return strconv.FormatBool(v.Int != 0)
	case classad.List:
		parts := make([]string, len(v.List))
		for i := range v.List {
			parts[i] = valueText(v.List[i])
		}
		return strings.Join(parts, ",")
	}
	return ""
}

// decimalOf is the number of a column. It is not known where it is undefined or an error, or,
// where it may be one, an expression, which only HTCondor can evaluate.
func (j *Job) decimalOf(c int) (f float64, known bool, err error) {
	t := j.fields[c]
	if t == "" {
		return 0, false, nil
	}
	switch v := classad.Parse(t); v.Kind {
	case classad.Int:
		return float64(v.Int), true, nil
	case classad.Real:
		if math.Abs(v.Real) < 1<<63 { // an amount that is more has run over
			return v.Real, true, nil
		}
	case classad.Undefined, classad.Error:
		return 0, false, nil
	case classad.Expression:
		if j.index.kinds[c] == formula {
			return 0, false, nil
		}
	}
	return 0, false, j.unreadableError(c)
}

// wholeNumber is the number of a column, rounded half to even.
func (j *Job) wholeNumber(c int) (n int64, known bool, err error) {
	if n, ok := spelling.Digits(j.fields[c]); ok {
		return n, true, nil
	}
	f, known, err := j.decimalOf(c)
	if err == nil {
		n, err = spelling.RoundToEven(f)
	}
	return n, known, err
}

// Written is EpochWriteDate; 0 of what is not an epoch.
func (j *Job) Written() int64 {
	if !j.Epoch {
		return 0
	}
	return j.numberAt(epochWriteDate)
}
