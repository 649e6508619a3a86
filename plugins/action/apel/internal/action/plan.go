package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// planner makes one plan.
type planner struct {
	*Action
	data   reader
	now    time.Time
	state  state
	signer *smime.Signer // nil: nothing is signed
	out    sdk.Plan
	again  bool   // messages are sent even if nothing has changed
	day    string // the one whose jobs are sent; "": all
	size   int    // of all messages, with what surrounds them
	full   string // the site and month from which on nothing fits
	left   []string
	until  time.Time // when no further month is begun; zero: never
	ahead  bool      // a month was looked at that no run before has looked at
}

func (a *Action) planRun(ctx context.Context, start sdk.PlanStart, data reader) (sdk.Plan, error) {
	p := planner{Action: a, data: data, now: start.Now}
	if end, ok := ctx.Deadline(); ok {
		p.until = time.Now().Add(time.Until(end) * 2 / 3)
	}
	var err error
	if p.state, err = readState(start.State); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.loadSigner(); err != nil {
		return sdk.Plan{}, err
	}
	sites, only, err := p.readArguments(start.Arguments)
	if err != nil {
		return sdk.Plan{}, err
	}
	for _, s := range sites {
		if err := p.planSite(ctx, s, only); err != nil {
			return sdk.Plan{}, err
		}
	}
	p.completeNotes()
	p.out.State, err = p.state.encodeState()
	return p.out, err
}

// completeNotes completes the notes: what people must do comes before long lists, which the
// daemon cuts.
func (p *planner) completeNotes() {
	switch {
	case p.full == "":
	case p.again:
		p.out.Partial = true
		p.addNote("what was asked for does not fit into a run, which sends %d MB at most and looks at months for some minutes: nothing is sent from %s on; order it by site=NAME, and jobs by day=%s", p.room/1e6, p.full, p.now.UTC().Format(time.DateOnly))
	default:
		p.out.Partial = true
		p.addNote("a run sends %d MB at most, and looks at months for some minutes: from %s on the next run goes on, which bursar actions run orders", p.room/1e6, p.full)
	}
	p.out.Notes = append(p.out.Notes, p.left...)
}

// soon is how long before its end a certificate is worth a note.
const soon = 14 * 24 * time.Hour

func (p *planner) loadSigner() error {
	if p.config.cert == "" {
		return nil
	}
	var err error
	if p.signer, err = smime.Load(p.config.cert, p.config.key); err != nil {
		return err
	}
	if err := p.signer.Check(p.now); err != nil {
		return fmt.Errorf("nothing can be signed: %w; put a valid one into %s", err, p.config.cert)
	}
	if ends := p.signer.Ends(); ends.Sub(p.now) < soon {
		p.addNote("the certificate in %s ends at %s", p.config.cert, ends.UTC().Format(time.RFC3339))
	}
	return nil
}

func (p *planner) addNote(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// readArguments are those of a manual run: month=2026-10 sends that month again, of all
// sites or of site=NAME, and day=2026-10-17 the jobs of a day.
func (p *planner) readArguments(args map[string]string) (sites []site, only month.Month, err error) {
	sites = p.config.sites
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if name != "month" && name != "site" && name != "day" {
			return nil, only, fmt.Errorf("there is no argument %q; month=2026-10 sends a month again, of all sites or of site=NAME", name)
		}
	}
	text, manual := args["month"]
	if day, ok := args["day"]; ok {
		if text, err = p.ofDay(day, text); err != nil {
			return nil, only, err
		}
		manual = true
	}
	name, one := args["site"]
	switch {
	case !manual && !one:
		return sites, only, nil
	case !manual:
		return nil, only, errors.New("site needs a month: month=2026-10")
	}
	if only, err = month.Parse(text); err != nil {
		return nil, only, fmt.Errorf("month: %w", err)
	}
	switch {
	case only.Before(p.config.from):
		return nil, only, fmt.Errorf("month %s is before %s, from which on the configuration says that all records are here", only, p.config.from)
	case month.Of(p.now).Before(only):
		return nil, only, fmt.Errorf("month %s is in the future", only)
	}
	if p.again = true; !one {
		return sites, only, nil
	}
	i := slices.IndexFunc(sites, func(s site) bool { return s.name == name })
	if i < 0 {
		return nil, only, fmt.Errorf("there is no site %q in the configuration", name)
	}
	return sites[i : i+1], only, nil
}

// ofDay is the month of the day that is to be sent.
func (p *planner) ofDay(day, month string) (string, error) {
	at, err := time.Parse(time.DateOnly, day)
	switch {
	case err != nil:
		return "", fmt.Errorf("day: %q is no day; expected something like 2026-10-17", day)
	case p.config.jobs == "":
		return "", errors.New("summaries are of whole months: name a month; days are for send = \"jobs\"")
	case month != "" && month != at.Format("2006-01"):
		return "", fmt.Errorf("day %s is not in month %s", day, month)
	}
	p.day = day
	return at.Format("2006-01"), nil
}

// monthsToCheck are all months since the last that was checked, that one and
// recheck months before it included. So what came late while nothing ran is found as
// if it had run. Manual runs have one month.
func (p *planner) monthsToCheck(st *siteState, only month.Month) []month.Month {
	if p.again {
		return []month.Month{only}
	}
	first := p.config.from
	if through, err := month.Parse(st.Through); err == nil && first.Before(through.Add(-p.config.recheck)) {
		first = through.Add(-p.config.recheck)
	}
	return first.Through(month.Of(p.now))
}

// planSite plans the months of a site, as far as they fit.
func (p *planner) planSite(ctx context.Context, s site, only month.Month) error {
	st := p.state.stateOf(s.name)
	for _, m := range p.monthsToCheck(st, only) {
		if p.full == "" && p.ahead && !p.until.IsZero() && time.Now().After(p.until) {
			p.full = s.name + " " + m.String()
		}
		if p.full != "" {
			break
		}
		looked, err := p.planMonth(ctx, s, m, st)
		if err != nil {
			return err
		}
		if looked && st.Through < m.String() && !p.again {
			st.Through, p.ahead = m.String(), true
		}
	}
	if through, err := month.Parse(st.Through); err == nil && !p.again {
		st.forgetBefore(through.Add(-p.config.recheck))
	}
	if st.Through == "" {
		delete(p.state.Sites, s.name)
	}
	return nil
}

// planMonth plans the messages of a site's month, unless they are what was sent. It is
// false when the month does not fit, and nothing of it is planned.
func (p *planner) planMonth(ctx context.Context, s site, m month.Month, st *siteState) (bool, error) {
	before := st.Sent[m.String()]
	draw := p.monthSummaries
	if p.config.jobs != "" {
		draw = p.monthJobs
	}
	d, err := draw(ctx, s, m, before)
	if err != nil {
		return false, err
	}
	same := !d.cut && before != nil && before.Digest == d.digest && !p.again
	if d.cut || !same && !p.fitsRun(d.size) {
		if p.full = s.name + " " + m.String(); d.size == 0 || !d.cut {
			return false, nil
		}
	}
	p.reportLacks(s, m, d.counts)
	if p.again && !d.cut {
		p.compareMonth(ctx, s, m, d)
	}
	switch {
	case d.counts.sums.Total().Records == 0:
		if before != nil && before.Jobs > 0 {
			p.addNote("%s %s: %d jobs were sent and none are left; the receiver keeps what it has", s.name, m, before.Jobs)
		}
		return true, nil
	case same:
		return true, nil
	}
	for _, b := range d.batches {
		if err := p.addEffects(s, m, b, describeDifference(s, m, d.counts.sums.Total(), before), before); err != nil {
			return false, err
		}
	}
	p.size += d.size
	if n := len(d.vanishedRows(before)); n > 0 {
		p.addNote("%s %s: %d rows that were sent have no job any more, because a field of their key has changed; they stay at the receiver, which counts them beside the new ones until APEL's support deletes them", s.name, m, n)
	}
	st.Sent[m.String()] = d.sentAfter(before)
	return true, nil
}

// fitsRun reports whether messages of that size fit into the run. Alone they do.
func (p *planner) fitsRun(size int) bool { return p.size == 0 || p.size+size <= p.room }

// maxGauges and maxLabel are what the daemon takes.
const (
	maxGauges = 200
	maxLabel  = 64
)

// reportLacks tells what a month lacks, and the figures of the newest ones.
func (p *planner) reportLacks(s site, m month.Month, t *monthCounts) {
	heads, left := t.notesOf(s, m)
	p.out.Notes, p.left = append(p.out.Notes, heads...), append(p.left, left...)
	p.out.Partial = p.out.Partial || t.left > 0
	recent := !m.Before(month.Of(p.now).Add(-1)) || p.again
	if !recent || len(s.name) > maxLabel || len(p.out.Gauges)+2 > maxGauges {
		return
	}
	labels := map[string]string{"site": s.name, "month": m.String()}
	p.out.Gauges = append(p.out.Gauges,
		sdk.Gauge{Name: "jobs", Labels: labels, Value: float64(t.sums.Total().Jobs)},
		sdk.Gauge{Name: "left_out", Labels: labels, Value: float64(t.left)})
}

// describeDifference says in a line what the receiver will have that it has not.
func describeDifference(s site, m month.Month, now month.Total, before *sent) string {
	text := fmt.Sprintf("%s %s: %d jobs, %d s wall, %d s CPU", s.name, m, now.Jobs, now.Wall, now.CPU)
	if before == nil {
		return text
	}
	return fmt.Sprintf("%s (sent before: %d jobs, %d s wall, %d s CPU)", text, before.Jobs, before.Wall, before.CPU)
}

// addEffects adds one effect for each message.
func (p *planner) addEffects(s site, m month.Month, b batch, summary string, before *sent) error {
	for i := b.from; i < b.to; i++ {
		text := b.text[i]
		name := []string{"site=" + s.name, "month=" + m.String(), b.what}
		if len(b.text) > 1 {
			name = append(name, fmt.Sprintf("part=%d/%d", i+1, len(b.text)))
		}
		load := payload{At: p.now.UTC(), ID: messageID(p.now, len(p.out.Effects)), data: text}
		if p.signer != nil {
			var err error
			if load.data, err = p.signer.Sign(text); err != nil {
				return err
			}
			load.Signed = true
		}
		var rows changes
		if b.what == summaries {
			rows = changesFrom(before)
		}
		show := rows.showMessage(text)
		bytes, err := load.encodePayload()
		if err != nil {
			return err
		}
		p.out.Effects = append(p.out.Effects, sdk.Effect{
			Name: strings.Join(name, " "), Payload: bytes, Show: show,
			Summary: fmt.Sprintf("%s: %s of %d rows%s", summary, b.what, message.Count(text), rows.String()),
		})
	}
	return nil
}
