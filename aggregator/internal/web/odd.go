package web

import (
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// listed bounds the lists of what is odd.
const listed = 200

// quarantinePage is what the quarantine page shows.
type quarantinePage struct {
	Tabs []tab
	Jobs []quarantined
	More bool // there are others
}

// quarantined is a job that gave no valid record.
type quarantined struct {
	Agent, Source, ID, Reason, Message, RecordID string
	First, Last                                  time.Time
	Count                                        int64
	Raw                                          string
	Cut                                          bool // Raw is only the beginning
}

func (p *Pages) quarantine(_ *http.Request, v *access.View) (any, error) {
	page := &quarantinePage{}
	var err error
	if page.Tabs, err = tabs(v, "quarantine"); err != nil {
		return nil, err
	}
	err = v.Quarantine(func(q *store.Quarantined) error {
		if len(page.Jobs) == listed {
			page.More = true
			return errEnough
		}
		page.Jobs = append(page.Jobs, quarantinedOf(q))
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

// rawShown bounds the raw input in the page.
const rawShown = 4096

func quarantinedOf(q *store.Quarantined) quarantined {
	raw, cut := readable(q.Raw, rawShown)
	return quarantined{
		Agent: q.Source.Agent, Source: q.Source.Type + "/" + q.Source.Label, ID: q.ID, Reason: q.Reason, Message: q.Message, RecordID: q.RecordID,
		First: std(q.First), Last: std(q.Last), Count: q.Count, Raw: raw, Cut: cut || q.Truncated,
	}
}

// readable is the beginning of raw as valid text.
func readable(raw []byte, limit int) (text string, cut bool) {
	if len(raw) > limit {
		raw, cut = raw[:limit], true
	}
	return strings.ToValidUTF8(string(raw), string(utf8.RuneError)), cut
}

// conflictsPage is what the conflicts page shows.
type conflictsPage struct {
	Tabs      []tab
	Conflicts []conflict
	Waiting   []conflict
	More      bool
}

// conflict is a run about which origins disagree, or a stop without a body.
type conflict struct {
	ID      string
	Sayings []saying
}

func (p *Pages) conflicts(_ *http.Request, v *access.View) (any, error) {
	page := &conflictsPage{}
	collect := func(into *[]conflict) func(*record.Entry) error {
		return func(e *record.Entry) error {
			if len(*into) == listed {
				page.More = true
				return errEnough
			}
			*into = append(*into, conflict{ID: e.ID, Sayings: sayings(e)})
			return nil
		}
	}
	var err error
	if page.Tabs, err = tabs(v, "conflicts"); err != nil {
		return nil, err
	}
	err = v.Conflicts(collect(&page.Conflicts))
	if v.Principal().Rows.All() { // a stop says nothing by which it could be shown to some
		err = errors.Join(err, v.WaitingStops(collect(&page.Waiting)))
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

// sayings is what each origin says about a run.
func sayings(e *record.Entry) []saying {
	var out []saying
	for i := range e.Holdings {
		h := &e.Holdings[i]
		s := saying{Origin: h.Origin.String(), Rank: h.Rank.String(), Withdrawn: h.Withdrawn(), Waiting: h.Waiting()}
		if r := h.Shown(); r != nil {
			s.Start, s.Stop = std(r.Start), std(r.Stop)
		} else {
			s.Stop = std(h.Stop)
		}
		if o := h.Effective().Observed; o != 0 {
			s.Observed = time.UnixMicro(o).UTC()
		}
		out = append(out, s)
	}
	return out
}
