package access

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

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
