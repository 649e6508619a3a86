package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// jobEntry is what is known of one job.
func jobEntry() Entry {
	period := periodParam()
	period.Most, period.Default = 1, []string{"30d"}
	period.About = "When the job ended: what sources lack of that time."
	return Entry{
		Report: v1.Report{
			Name: "job", Title: "Job", About: "What is known of one job: its record, or why it was not counted.",
			Parameters: []Param{
				{Name: "job", Title: "Job", Kind: ParamText, Most: 1, Needed: true, Default: []string{}, Words: []string{"4711", "nemo-4711"}, About: "The id of the job, or of its record."},
				period, zoneParam(),
			},
		},
		Long: `What is known of one job: its record, whether it is counted, still runs, is in
quarantine, was deleted, withdrawn or archived; and, of each source, up to when it is
complete and what it lacks of the time in which the job ended: gaps, runs that have no
record, and jobs that its configuration leaves out, of which no ids are known.

The id of a job is looked for as it is and behind the prefixes of all records, whichever a
mapping gives (of those with more than 64 numbers, or words, in the same place not all): of 4711, nemo-4711 is found, its tasks such as nemo-4711_3, and its later runs.`,
		Example: "  bursar report job -job 4711\n  bursar report job -job nemo-4711 -period 2026-03-01",
		make:    reportJob,
	}
}

// inquiry is a report about a job.
type inquiry struct {
	r     v1.API
	d     *Document
	id    string
	zone  *time.Location
	when  v1.Window
	found Table

	agents []v1.Agent
	some   bool // the reader sees only some of the records, and no agents
}

func reportJob(ctx context.Context, r v1.API, q Query) (*Document, error) {
	zoneName := q.One("zone")
	zone, err := clockOf(ctx, r, &zoneName)
	if err != nil {
		return nil, fmt.Errorf("report job: %w", err)
	}
	w, err := calendar.ParseWindow(q.One("period"), record.FromStd(q.Now), zone)
	if err != nil {
		return nil, fmt.Errorf("%w: period: %w", ErrQuery, err)
	}
	span := span{From: w.From.Std(), To: w.To.Std()}
	i := &inquiry{
		r: r, id: q.One("job"), zone: zone, when: v1.Window{From: v1.Stamp(w.From), To: v1.Stamp(w.To)},
		d: &Document{Format: Format, Report: "job", Title: "Job", Subject: q.One("job"), Made: v1.Time{Time: q.Now.UTC()}, Zone: zone.String(), Periods: []Period{span.namedPeriod(q.One("period"), zone)}},
		found: Table{Name: "found", Title: "What is known", Columns: []Column{
			{Name: "record_id", Title: "Record", Kind: Text}, {Name: "state", Title: "State", Kind: Text}, {Name: "detail", Title: "Detail", Kind: Text},
		}},
	}
	for _, part := range []func(context.Context) error{i.askAgents, i.findRecords, i.findQuarantined, i.addSources} {
		if err := part(ctx); err != nil {
			return nil, fmt.Errorf("report job: %w", err)
		}
	}
	return i.d, i.d.Check()
}

func (i *inquiry) addNote(format string, args ...any) {
	i.d.Notes = append(i.d.Notes, fmt.Sprintf(format, args...))
}

// askAgents asks for the agents.
func (i *inquiry) askAgents(ctx context.Context) error {
	list, err := i.r.Agents(ctx, nil)
	if i.some = hasStatus(err, http.StatusForbidden); i.some {
		return nil
	}
	i.agents = list.Agents
	return err
}

// findRecords asks what is held under the ids of the job.
func (i *inquiry) findRecords(ctx context.Context) error {
	job, err := i.r.JobRecords(ctx, &v1.JobRecordsQuery{ID: i.id})
	if err != nil && !hasStatus(err, http.StatusBadRequest) { // or no record can have it
		return err
	}
	if job.More {
		i.addNote("There may be more records of this job than are listed.")
	}
	for _, id := range job.Records {
		e, err := i.r.GetEntry(ctx, id, nil)
		if errors.Is(err, client.ErrNotFound) || hasStatus(err, http.StatusBadRequest) { // or it is the id of no record
			continue
		}
		if err != nil {
			return err
		}
		i.addRow(id, view.EntryState(&e), i.entryDetail(&e))
	}
	return nil
}

func (i *inquiry) addRow(id, state, detail string) {
	i.found.Rows = append(i.found.Rows, []Cell{v1.Words(id), v1.Words(state), v1.Words(detail)})
}

// entryDetail says when a record ran, and who said so.
func (i *inquiry) entryDetail(e *v1.Entry) string {
	var parts []string
	if r := e.Record; r != nil {
		parts = append(parts, "start "+view.Instant(r.StartTime, i.zone.String()))
		if !r.StopTime.IsZero() {
			parts = append(parts, "stop "+view.Instant(r.StopTime, i.zone.String()))
		}
	}
	if e.Conflict {
		parts = append(parts, "sources disagree about its start")
	}
	var origins []string
	for _, h := range e.Holdings {
		origins = append(origins, h.Origin)
	}
	if len(origins) > 0 {
		parts = append(parts, "by "+strings.Join(origins, ", "))
	}
	return strings.Join(parts, "; ")
}

// findQuarantined looks for the job in the quarantine, and adds what is found.
func (i *inquiry) findQuarantined(ctx context.Context) error {
	list, err := i.r.Quarantine(ctx, nil)
	switch {
	case hasStatus(err, http.StatusForbidden):
		i.addNote("Whether the job is in quarantine is shown only to readers of all records.")
	case err != nil:
		return err
	}
	isFound := false
	for _, q := range list.Quarantine {
		if q.ID == i.id || q.RecordID == i.id || q.SourceLabel+"-"+q.ID == i.id {
			isFound = true
			i.addRow(cmp.Or(q.RecordID, q.ID), view.StateQuarantined, fmt.Sprintf("job %s of %s/%s/%s: %s: %s", q.ID, q.Agent, q.SourceType, q.SourceLabel, q.Reason, q.Message))
		}
	}
	if list.More && !isFound {
		i.addNote("The job is not among the first %s in quarantine; not all of them were looked at.", view.Plural(len(list.Quarantine), "job"))
	}
	if len(i.found.Rows) == 0 {
		i.addRow(i.id, view.StateUnknown, "no source and no client has sent it, or it is of a record that you have no access to")
	}
	i.d.Add(i.found)
	return nil
}

// addSources says of each source up to when it is complete, and why a job of the period may be
// missing.
func (i *inquiry) addSources(ctx context.Context) error {
	if i.some {
		i.addNote("What sources lack is shown only to readers of all records.")
		return nil
	}
	gaps, err := i.r.Gaps(ctx, nil)
	if err != nil {
		return err
	}
	days, err := i.r.Completeness(ctx, &v1.CompletenessQuery{From: i.when.From.UTC().Format(time.DateOnly), To: i.when.To.Add(24*time.Hour - 1).UTC().Format(time.DateOnly)})
	if hasStatus(err, http.StatusBadRequest) {
		i.addNote("How many jobs sources leave out is not known of this period: %v.", err)
		err = nil
	}
	if err != nil {
		return err
	}
	t := Table{Name: "sources", Title: "Why a job that ended then may be missing", Columns: []Column{
		{Name: "source", Title: "Source", Kind: Text}, {Name: "complete_to", Title: "Complete to", Kind: Text}, {Name: "why", Title: "What is missing", Kind: Text},
	}}
	for a := range i.agents {
		agent := &i.agents[a]
		if len(agent.Sources) == 0 {
			t.Rows = append(t.Rows, []Cell{v1.Words(agent.Name), {}, v1.Words(strings.Join(append(i.agentLacks(agent, gaps.Gaps), "nothing was received from it"), "; "))})
		}
		for s := range agent.Sources {
			source := &agent.Sources[s]
			name := agent.Name + "/" + source.Type + "/" + source.Label
			lacks := slices.Concat(i.agentLacks(agent, gaps.Gaps), i.sourceLacks(agent.Name, source, gaps.Gaps), daysLack(name, days.Days))
			if source.Type == "" {
				name = agent.Name + ", pushed"
			}
			complete := Cell{}
			if !source.CompleteTo.IsZero() {
				complete = v1.Words(view.Instant(source.CompleteTo, i.zone.String()))
			}
			t.Rows = append(t.Rows, []Cell{v1.Words(name), complete, v1.Words(cmp.Or(strings.Join(lacks, "; "), "nothing known"))})
		}
	}
	if gaps.More {
		i.addNote("There are more gaps than were looked at.")
	}
	i.addNote("Sources send no ids of jobs that their configuration leaves out: only their number by day is known, in UTC.")
	if len(t.Rows) > 0 {
		i.d.Add(t)
	} else {
		i.addNote("No agent is known.")
	}
	return nil
}

// agentLacks is what an agent has not sent.
func (i *inquiry) agentLacks(a *v1.Agent, gaps []v1.Gap) (list []string) {
	if a.Error != "" {
		list = append(list, "the agent cannot be reached: "+a.Error)
	}
	if a.Behind != nil && *a.Behind > 0 {
		list = append(list, "the agent has "+view.Plural(int64(*a.Behind), "frame")+" that did not arrive yet") //nolint:gosec // a count
	}
	return append(list, i.gapsOf(gaps, a.Name, "", "")...)
}

// sourceLacks is what a source has not collected.
func (i *inquiry) sourceLacks(agent string, s *v1.AgentSource, gaps []v1.Gap) (list []string) {
	switch {
	case s.Type == "":
	case s.CompleteTo.IsZero():
		list = append(list, "it says of no time that it is complete")
	case s.CompleteTo.Before(i.when.To.Time):
		list = append(list, "what ended after "+view.Instant(s.CompleteTo, i.zone.String())+" is not complete yet")
	}
	if s.Error != "" {
		list = append(list, "it cannot be collected: "+s.Error)
	}
	if s.Silent {
		list = append(list, "it is silent for longer than is usual")
	}
	if s.Type != "" {
		list = append(list, i.gapsOf(gaps, agent, s.Type, s.Label)...)
	}
	return list
}

// gapsOf are the gaps of a source that touch the period; without a type those of the agent.
func (i *inquiry) gapsOf(gaps []v1.Gap, agent, typ, label string) (list []string) {
	for _, g := range gaps {
		if g.Agent == agent && g.SourceType == typ && g.SourceLabel == label && g.From.Before(i.when.To.Time) && (g.To.IsZero() || g.To.After(i.when.From.Time)) {
			from := "the start"
			if !g.From.IsZero() {
				from = view.Instant(g.From, i.zone.String())
			}
			until := "now"
			if !g.To.IsZero() {
				until = view.Instant(g.To, i.zone.String())
			}
			list = append(list, fmt.Sprintf("gap from %s to %s: %s", from, until, g.Reason))
		}
	}
	return list
}

// daysLack is what days of a source lack.
func daysLack(source string, days []v1.Day) (list []string) {
	var filtered, missing, uncounted int64
	for _, d := range days {
		if d.Source != source {
			continue
		}
		missing += d.Missing
		if d.Filtered != nil {
			filtered += *d.Filtered
		}
		if d.Runs == nil {
			uncounted++
		}
	}
	if filtered > 0 {
		list = append(list, view.Plural(filtered, "job")+" left out by the configuration of the source")
	}
	if missing > 0 {
		list = append(list, view.Plural(missing, "run")+" of the scheduler without a record")
	}
	if uncounted > 0 {
		list = append(list, view.Plural(uncounted, "day")+" not compared with the scheduler")
	}
	return list
}
