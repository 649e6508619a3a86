package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The outcomes of a [Sample].
const (
	Kept     = "record"
	Filtered = "left out by the mapping"
	Excluded = "left out by the source's config"
	Failed   = "failed"
	Refused  = "refused"
)

// Sample is a real job and what becomes of it.
type Sample struct {
	Run        string
	Ended      bool
	Attributes []Attribute // those that the mapping names, by name
	Outcome    string
	Record     *record.Record  // when Kept
	FromBlock  map[string]bool // the parts of the record that the record block decides, by name
	Err        error           // when Failed or Refused
}

// Previewed is what a window of a source has.
type Previewed struct {
	Samples  []Sample            // the last jobs
	Refused  []Sample            // the last input that is not a job
	Findings []translate.Finding // about the records of all jobs of the window
}

// Attribute is one of a job's, with its value as JSON; null when it has none.
type Attribute struct {
	Name  string
	Value json.RawMessage
}

// Preview shows the last most jobs of a window and what the mapping makes of
// them, and what is found about all jobs of the window. Nothing is kept.
func Preview(ctx context.Context, cfg *config.Config, s *config.Source, p Plugins, w collect.Window, most int) (out Previewed, err error) {
	p.Trial = true
	session, diags, err := p.Open(ctx, cfg, s)
	if err != nil {
		return out, err
	}
	if diags.HasErrors() {
		return out, diags.Err()
	}
	defer func() { _ = session.Close() }()
	if session.Mapper == nil {
		return out, nil // what was pushed cannot be had again, and is not mapped
	}
	var jobs []*bursarv1.Job
	var found translate.Findings
	err = collect.Sample(ctx, session, w, func(job *bursarv1.Job) bool {
		if jobs = append(jobs, job); len(jobs) >= 2*most {
			jobs = slices.Delete(jobs, 0, len(jobs)-most)
		}
		if r, keep, err := translate.Map(session.Mapper, job); err == nil && keep {
			found.Note(session.Mapper, job, &r, time.Now())
		}
		return true
	}, func(r *bursarv1.Refused) {
		out.Refused = append(out.Refused, Sample{Run: r.GetRun(), Outcome: Refused, Err: errors.New(r.GetMessage())})
		out.Refused = slices.Delete(out.Refused, 0, max(0, len(out.Refused)-most))
	})
	if err != nil {
		return out, fmt.Errorf("source %s: %w", s.Name(), err)
	}
	for _, job := range jobs[max(0, len(jobs)-most):] {
		out.Samples = append(out.Samples, sampleJob(session, job))
	}
	out.Findings = found.List()
	return out, nil
}

func sampleJob(session *host.Session, job *bursarv1.Job) Sample {
	out := Sample{Run: job.GetRun(), Ended: job.GetEnded(), Outcome: Excluded, Attributes: attributeValues(session, job)}
	if job.GetExcluded() {
		return out
	}
	r, keep, err := session.Mapper.Map(job)
	switch {
	case err != nil:
		out.Outcome, out.Err = Failed, err
	case !keep:
		out.Outcome = Filtered
	default:
		out.Outcome, out.Record, out.FromBlock = Kept, &r, session.Mapper.FromBlock(job)
	}
	return out
}

// formatInstant writes microseconds as expressions see them.
func formatInstant(value json.RawMessage) json.RawMessage {
	var t int64
	if json.Unmarshal(value, &t) != nil {
		return value
	}
	return fmt.Appendf(nil, "%q", record.Time(t))
}

// attributeValues are the values that the mapping names.
func attributeValues(plugin *host.Session, job *bursarv1.Job) []Attribute {
	text, _ := translate.Raw(job, plugin.Description.GetAttributes())
	var raw struct {
		Attributes map[string]json.RawMessage `json:"attributes"`
	}
	_ = json.Unmarshal(text, &raw) // what was cut has no attributes to show
	times := map[string]bool{}
	for _, a := range plugin.Description.GetAttributes() {
		times[a.GetName()] = a.GetType() == bursarv1.Type_TYPE_TIME
	}
	var out []Attribute
	for _, name := range plugin.Mapper.Wanted() {
		value, ok := raw.Attributes[name]
		switch {
		case !ok:
			value = json.RawMessage("null")
		case times[name]:
			value = formatInstant(value)
		}
		out = append(out, Attribute{name, value})
	}
	return out
}
