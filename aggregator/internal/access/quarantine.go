package access

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// QuarantineCount returns how many jobs are quarantined. The error is as that of
// Figures.
func (v *View) QuarantineCount() (uint64, error) {
	if err := v.requireFigures(); err != nil {
		return 0, err
	}
	return v.view.Anomalies().Quarantined, nil
}

// InsteadOfRetry returns a function that says what to do with a quarantined job that no agent
// can map again; it says nothing where one can. The error is as that of Agents.
func (v *View) InsteadOfRetry() (func(*store.Quarantined) string, error) {
	cursors, err := v.Agents()
	imports := map[string]bool{}
	for i := range cursors {
		imports[cursors[i].Agent] = store.IsImport(cursors[i].Epoch)
	}
	return func(q *store.Quarantined) string {
		switch {
		case imports[q.Source.Agent]:
			return "import the file again under a mended mapping, which settles it"
		case q.Source.Type == "": // pushed
			return "push it again, corrected, then drop this"
		case q.Reason == "input" || q.Truncated || q.IsRecord():
			return fmt.Sprintf("correct it where the source reads it, then, on %s: bursar-agent recollect -source %s/%s -from DAY", q.Source.Agent, q.Source.Type, q.Source.Label)
		}
		return ""
	}, err
}

// mostSearched is how many quarantined jobs are looked at for one id.
const mostSearched = 20_000

// errFound ends a search.
var errFound = errors.New("found")

// WhyUnknown says why no record of an id is shown: its job is quarantined. The id may be that
// of the record or of the job. It returns "" where no reason is known, and for readers who
// see some of the records only, or no names, of which quarantined jobs say nothing.
func (v *View) WhyUnknown(id string) (reason string, err error) {
	seen := 0
	err = v.Quarantine(func(q *store.Quarantined) error {
		if seen++; seen > mostSearched {
			return errFound
		}
		if q.ID == id || q.RecordID == id || q.ID != "" && strings.HasSuffix(id, "-"+q.ID) {
			reason = fmt.Sprintf("job %s of %s is quarantined, so its usage is not counted: %s: %s", q.ID, q.Source, q.Reason, q.Message)
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) || errors.Is(err, ErrRows) || errors.Is(err, ErrDenied) || errors.Is(err, ErrNames) {
		err = nil
	}
	return reason, err
}
