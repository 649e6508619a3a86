package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/run"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/translate"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func (a *app) previewCommand() *cobra.Command {
	var source, since, until string
	var most int
	c := a.addFormatFlag(&cobra.Command{
		Use: "preview", Short: "Show the records that the mapping makes of the latest real jobs", Args: cobra.NoArgs,
		Long: `Ask the source plugins for the latest jobs and show, for each, the attributes that the
mapping names and the record that they become, or why there is none. Each part
of a record has what decides it beside it: the plugin's default mapping, or the record
block. Without -since it looks back 1 day, then 7 and 30 days, then over all history,
until it has found -n jobs. Below the jobs it shows input that is not a job, and what is found
about the records of the window, such as a key of a file that the mapping does not read.
Exit code 2 means that a job fails, or that there is such input or such a finding. Nothing is
stored, and the daemon need not run.`,
		Example: "  bursar-agent preview\n  bursar-agent preview -source slurm/nemo -since 7d -n 3\n  bursar-agent preview -format json",
		RunE: func(c *cobra.Command, _ []string) error {
			ws, err := previewWindows(since, until, time.Now())
			if err != nil {
				return err
			}
			if most < 1 {
				return errors.New("-n must be at least 1")
			}
			return a.previewSources(c.Context(), source, ws, most)
		},
	})
	c.Flags().StringVar(&source, "source", "", "the only source to ask, as `TYPE/LABEL`")
	c.Flags().StringVar(&since, "since", "", "start of the window, a `TIME`: a span back, a day or RFC 3339 (default: as far back as it takes)")
	c.Flags().StringVar(&until, "until", "", "end of the window, a `TIME` (default now)")
	c.Flags().IntVarP(&most, "number", "n", 10, "`N` jobs of each source")
	return c
}

// previewWindows are the windows to look into until there are enough jobs.
func previewWindows(since, until string, now time.Time) ([]collect.Window, error) {
	to := now.UTC()
	if until != "" {
		var err error
		if to, err = parseMoment(until, now); err != nil {
			return nil, fmt.Errorf("-until: %w", err)
		}
	}
	if since == "" {
		const day = 24 * time.Hour
		return []collect.Window{{From: to.Add(-day), To: to}, {From: to.Add(-7 * day), To: to}, {From: to.Add(-30 * day), To: to}, {From: startOfTime(), To: to}}, nil
	}
	from, err := parseMoment(since, now)
	if err != nil {
		return nil, fmt.Errorf("-since: %w", err)
	}
	if !from.Before(to) {
		return nil, errors.New("the window is empty: -since is not before -until")
	}
	return []collect.Window{{From: from, To: to}}, nil
}

// startOfTime is before any job.
func startOfTime() time.Time { return time.Unix(0, 0).UTC() }

func (a *app) previewSources(ctx context.Context, source string, windows []collect.Window, most int) error {
	cfg, _, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	sources, err := pickSources(cfg, source)
	if err != nil {
		return err
	}
	shown := []shownJob{}
	found := false
	var errs []error
	for _, s := range sources {
		p, err := a.lastSamples(ctx, cfg, s, windows, most)
		if err != nil {
			errs = append(errs, attachSources(cfg, err))
		}
		for _, x := range slices.Concat(p.Samples, p.Refused) {
			shown = append(shown, newShownJob(s.Name(), x))
			found = found || x.Err != nil
		}
		for i := range p.Findings {
			shown = append(shown, shownJob{Source: s.Name(), Outcome: "finding", Attributes: json.RawMessage("{}"), Finding: &p.Findings[i]})
		}
		found = found || len(p.Findings) > 0
	}
	if a.format == "json" {
		errs = append(errs, printJSON(a.Out, shown))
	} else {
		errs = append(errs, printJobs(a.Out, shown))
	}
	if err := errors.Join(errs...); err != nil || !found {
		return err
	}
	return exit(codeFinding)
}

// lastSamples are the last jobs of a source, from the first window that has enough.
func (a *app) lastSamples(ctx context.Context, cfg *config.Config, s *config.Source, windows []collect.Window, most int) (p run.Previewed, err error) {
	for _, w := range windows {
		if w.From.Equal(startOfTime()) {
			fmt.Fprintf(a.Err, "%s: %d jobs in the last 30 days; looking through all of the past\n", s.Name(), len(p.Samples))
		}
		if p, err = run.Preview(ctx, cfg, s, a.pluginOptions(), w, most); err != nil || len(p.Samples) >= most {
			return p, err
		}
	}
	if w := windows[len(windows)-1]; len(p.Samples) == 0 {
		fmt.Fprintf(a.Err, "%s: no job between %s and %s\n", s.Name(), w.From.Format(time.RFC3339), w.To.Format(time.RFC3339))
	}
	return p, nil
}

// shownJob is a job of a preview as it is printed.
type shownJob struct {
	Source     string          `json:"source"`
	Run        string          `json:"run"`
	Ended      bool            `json:"ended"`
	Attributes json.RawMessage `json:"attributes"`
	Outcome    string          `json:"outcome"`
	Error      string          `json:"error,omitempty"`
	Record     json.RawMessage `json:"record,omitempty"`
	// Origins says of each part of the record what decides it: "default" or "record block".
	Origins map[string]string `json:"origins,omitempty"`
	// Finding is about records of the window, and no job.
	Finding *translate.Finding `json:"finding,omitempty"`

	sample run.Sample
}

func newShownJob(source string, s run.Sample) shownJob {
	out := shownJob{Source: source, Run: s.Run, Ended: s.Ended, Outcome: s.Outcome, sample: s}
	object := map[string]json.RawMessage{}
	for _, x := range s.Attributes {
		object[x.Name] = x.Value
	}
	out.Attributes, _ = json.Marshal(object) // of JSON: never fails
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	if s.Record != nil {
		out.Record = wire.AppendJSON(nil, s.Record)
		out.Origins = map[string]string{}
		for _, p := range recordParts(s.Record) {
			out.Origins[p.name] = originOf(s, p)
		}
	}
	return out
}

func printJobs(w io.Writer, jobs []shownJob) error {
	var b strings.Builder
	for i, j := range jobs {
		if i > 0 {
			b.WriteByte('\n')
		}
		if j.Finding != nil {
			fmt.Fprintf(&b, "%s  %s\n  => do first: %s\n", j.Source, j.Finding.String(), j.Finding.Do)
			continue
		}
		if j.Outcome == run.Refused {
			fmt.Fprintf(&b, "%s  %s\n  => refused: %s\n", j.Source, orDefault(j.Run, "input without a run"), j.Error)
			continue
		}
		state := "running"
		if j.Ended {
			state = "ended"
		}
		fmt.Fprintf(&b, "%s  %s (%s)\n", j.Source, j.Run, state)
		for _, x := range j.sample.Attributes {
			writeLine(&b, "job."+x.Name, string(x.Value))
		}
		switch {
		case j.Error != "":
			fmt.Fprintf(&b, "  => fails: %s\n", j.Error)
		case j.sample.Record == nil:
			fmt.Fprintf(&b, "  => %s\n", j.Outcome)
		default:
			printRecord(&b, j.sample)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeLine(b *strings.Builder, name, value string) { fmt.Fprintf(b, "    %-24s %s\n", name, value) }

func printRecord(b *strings.Builder, s run.Sample) {
	fmt.Fprintf(b, "  => %s\n", s.Record.ID)
	for _, p := range recordParts(s.Record) {
		writeLine(b, p.label, fmt.Sprintf("%-12s  %s", originOf(s, p), p.value))
	}
}

// originOf says what decides a part of a record.
func originOf(s run.Sample, p recordPart) string {
	if s.FromBlock[p.name] {
		return "record block"
	}
	return "default"
}

// recordPart is a part of a record as a preview shows it.
type recordPart struct {
	name  string // as mapping.Changes names it
	label string
	value string
}

func recordParts(r *record.Record) []recordPart {
	stop := "still running"
	if !r.Open() {
		stop = r.Stop.String()
	}
	out := []recordPart{{"id", "id", r.ID}, {"start", "start", r.Start.String()}, {"stop", "stop", stop}}
	if r.Submit != record.None {
		out = append(out, recordPart{"submit", "submit", r.Submit.String()})
	}
	if r.State != "" {
		out = append(out, recordPart{"state", "state", r.State})
	}
	if r.Exit.Known {
		out = append(out, recordPart{"exit_code", "exit code", fmt.Sprint(r.Exit.Code)}, recordPart{"exit_signal", "exit signal", fmt.Sprint(r.Exit.Signal)})
	}
	for _, m := range r.Meta {
		out = append(out, recordPart{mapping.MetaPart(m.Key), "meta." + m.Key, strings.Join(m.Values, ", ")})
	}
	for _, c := range r.Components {
		out = append(out, recordPart{mapping.ComponentPart(c.Name), c.Name, formatAmounts(c)})
	}
	return out
}

// formatAmounts writes the amount of a component and its scores.
func formatAmounts(c record.Component) string {
	parts := []string{fmt.Sprint(c.Amount)}
	if c.Kind == record.Total {
		parts[0] += " in total"
	}
	for _, s := range c.Scores {
		parts = append(parts, fmt.Sprintf("%s %g", s.Name, s.Value))
	}
	return strings.Join(parts, ", ")
}
