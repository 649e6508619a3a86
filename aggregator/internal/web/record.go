package web

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// recordPage is what the page of one record shows.
type recordPage struct {
	v1.FullRecord

	Ran      string // as schedulers write it; "" where it has not stopped
	Exit     string // the exit code and a signal; "" where they are not known
	Keys     []metaLine
	JSON     string // the address at which /v1 has all of it
	Agents   bool   // the reader may see the page of agents
	Preview  string // the command that shows the raw job and the mapping of it; "": there is none
	Holdings shownTable
	Conflict bool
	Versions []version
	Whole    bool // these are all versions
	Job      jobPart
	Why      string     // the address of what is known of a job without a record
	OfJob    jobRecords // of the job that has the id
}

func (p *recordPage) pageTitle() string { return "Record " + p.RecordID }

// metaLine is a key with its values, each with the address of the records that have it.
type metaLine struct {
	Key    string
	Values []metaValue
}

type metaValue struct{ Value, Path string }

// version is what was shown of a record up to a change.
type version struct {
	v1.FullRecord

	Gone bool // nothing was shown
	New  string
}

// versionsShown bounds the history of a record.
const versionsShown = 50

func (p *Pages) recordContent(r *http.Request, v *access.View) (any, error) {
	id := r.URL.Query().Get("id")
	row, found, err := v.Get(id)
	if err != nil {
		return nil, err
	}
	if !found {
		return &recordPage{FullRecord: v1.FullRecord{RecordID: id}, Why: jobAddress(id), OfJob: p.recordsOfJob(r.Context(), id)}, p.notFound(v, id)
	}
	own := p.ownKeys()
	page := &recordPage{JSON: v1.GetEntryAddress(id, nil, "")}
	if page.FullRecord, err = fullRecord(&row); err != nil {
		return nil, err
	}
	page.Keys, page.Exit = metaLines(page.Meta, own), view.ExitText(&page.FullRecord)
	if page.Runtime != nil {
		page.Ran = v1.Duration(*page.Runtime)
	}
	page.Job = p.describeJob(r.Context(), &page.FullRecord, firstValue(page.Meta, own.User))
	if page.Agents = v.MayFigures() == nil; page.Agents {
		page.Preview = previewCommand(&page.FullRecord)
	}
	entry, err := p.V1.GetEntry(r.Context(), id, nil)
	if err != nil {
		return nil, err
	}
	page.Holdings, page.Conflict = p.showList(view.Holdings(entry), math.MaxInt, ""), entry.Conflict
	old, whole, err := v.History(&row, versionsShown)
	if err != nil {
		return nil, err
	}
	page.Whole = whole
	page.Versions, err = versionsOf(append([]columns.Row{row}, old...))
	return page, err
}

// jobAddress is the page with what is known of a job, by its id or that of its record.
func jobAddress(id string) string {
	return "/ui/reports?" + url.Values{"report": {"job"}, "job": {id}}.Encode()
}

// jobsListed is how many records of a job are listed where none has its id.
const jobsListed = 20

// jobRecords are ids of records of a job; More says that there are others.
type jobRecords struct {
	IDs  []string
	More bool
}

// recordsOfJob are ids of records of a job, which its id is a part of; none where they are not known.
func (p *Pages) recordsOfJob(ctx context.Context, id string) (j jobRecords) {
	job, err := p.V1.JobRecords(ctx, &v1.JobRecordsQuery{ID: id})
	if err != nil {
		return j
	}
	list := slices.DeleteFunc(job.Records, func(other string) bool { return other == id })
	return jobRecords{list[:min(len(list), jobsListed)], job.More || len(list) > jobsListed}
}

// notFound returns the error that says why no record of an id is shown, as far as is known.
func (p *Pages) notFound(v *access.View, id string) error {
	text := "Record " + strconv.Quote(id) + " not found."
	entry, err := v.Entry(id)
	if err != nil {
		return err
	}
	switch {
	case entry.Deleted && entry.DeletedAt.Present():
		text = fmt.Sprintf("Record %q was deleted on %s; its usage is not counted.", id, p.formatTime(stdTime(entry.DeletedAt)))
	case entry.Deleted:
		text = fmt.Sprintf("Record %q was deleted; its usage is not counted.", id)
	case slices.ContainsFunc(entry.Holdings, func(h record.Holding) bool { return h.Waiting() }):
		text = fmt.Sprintf("Of record %q only the stop is known: its record has not come yet, so its usage is not counted.", id)
	case slices.ContainsFunc(entry.Holdings, func(h record.Holding) bool { return h.Withdrawn() }):
		text = fmt.Sprintf("Record %q was withdrawn by its source; its usage is not counted.", id)
	default:
		why, err := v.WhyUnknown(id)
		if err != nil {
			return err
		}
		if why != "" {
			text += " " + view.Capital(why) + "."
		}
	}
	return status{http.StatusNotFound, text}
}

// previewCommand is what shows, on the agent's machine, the raw job of a record and which line of
// the mapping decides each part of it; "" where no source collected it.
func previewCommand(r *v1.FullRecord) string {
	part := strings.Split(r.Origin, "/")
	if len(part) != 3 || r.Rank == record.RankImport.String() || strings.ContainsFunc(r.Origin, func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && c != '/' && (c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)) // a shell reads it otherwise
	}) {
		return ""
	}
	from, to := r.StartTime.Time, r.StopTime.Time
	if !to.IsZero() {
		from = to
	} else {
		to = from
	}
	return fmt.Sprintf("bursar-agent preview -source %s/%s -since %s -until %s", part[1], part[2], from.UTC().Add(-time.Second).Format(time.RFC3339), to.UTC().Add(2*time.Second).Format(time.RFC3339))
}

// metaLines link each value to the records that have it.
func metaLines(m v1.Meta, keys report.Keys) (list []metaLine) {
	own := fieldsOf(keys)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		l := metaLine{Key: key}
		for _, value := range m[key] {
			list := v1.JoinList(value)
			q := url.Values{"key": {key}, "value": {list}}
			if name := own[key]; name != "" {
				q = url.Values{name: {list}}
			}
			l.Values = append(l.Values, metaValue{value, "/ui/records?" + q.Encode()})
		}
		list = append(list, l)
	}
	return list
}

// versionsOf are rows, the newest first, with what each has otherwise than the one
// before.
func versionsOf(rows []columns.Row) (list []version, err error) {
	for i := range rows {
		row := &rows[i]
		w := version{Gone: row.Tombstone}
		if w.FullRecord, err = fullRecord(row); err != nil {
			return nil, err
		}
		switch {
		case i+1 < len(rows):
			w.New = strings.Join(changesBetween(&rows[i+1], row), ", ")
		case row.Supersedes == 0:
			w.New = "the first"
		}
		list = append(list, w)
	}
	return list, nil
}

// changesBetween says what of a record is otherwise than before.
func changesBetween(before, now *columns.Row) (list []string) {
	switch {
	case now.Tombstone:
		return []string{"not shown any more"}
	case before.Tombstone:
		return []string{"shown again"}
	}
	a, b := &before.Record, &now.Record
	note := func(changed bool, what string) {
		if changed {
			list = append(list, what)
		}
	}
	note(before.Origin != now.Origin, "origin")
	note(a.Start != b.Start, "start")
	note(before.ShownStop() != now.ShownStop(), "stop")
	note(a.Submit != b.Submit, "submit time")
	note(a.State != b.State, "state")
	note(a.Exit != b.Exit, "exit code")
	note(fmt.Sprint(a.Meta) != fmt.Sprint(b.Meta), "meta")
	note(!slices.EqualFunc(a.Components, b.Components, func(x, y record.Component) bool {
		return x.Name == y.Name && x.Amount == y.Amount && x.Kind == y.Kind && slices.Equal(x.Scores, y.Scores)
	}), "components")
	return list
}
