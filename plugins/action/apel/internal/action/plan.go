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
	again  bool // messages are sent even if nothing has changed
}

func (a *Action) plan(ctx context.Context, start sdk.PlanStart, data reader) (sdk.Plan, error) {
	p := planner{Action: a, data: data, now: start.Now}
	var err error
	if p.state, err = readState(start.State); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.loadSigner(); err != nil {
		return sdk.Plan{}, err
	}
	sites, only, err := p.arguments(start.Arguments)
	if err != nil {
		return sdk.Plan{}, err
	}
	for _, s := range sites {
		if err := p.site(ctx, s, only); err != nil {
			return sdk.Plan{}, err
		}
	}
	p.out.State, err = p.state.bytes()
	return p.out, err
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
		p.note("the certificate in %s ends at %s", p.config.cert, ends.UTC().Format(time.RFC3339))
	}
	return nil
}

func (p *planner) note(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// arguments are those of a manual run: month=2026-10 sends that month again, of all
// sites or of site=NAME.
func (p *planner) arguments(args map[string]string) (sites []site, only month.Month, err error) {
	sites = p.config.sites
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if name != "month" && name != "site" {
			return nil, only, fmt.Errorf("there is no argument %q; month=2026-10 sends a month again, of all sites or of site=NAME", name)
		}
	}
	text, manual := args["month"]
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

// site plans the months of a site: all since the last that was looked at, that one and
// recheck months before it included. So what came late while nothing ran is found as if
// it had run. Manual runs have one month.
func (p *planner) site(ctx context.Context, s site, only month.Month) error {
	st, last := p.state.of(s.name), month.Of(p.now)
	months := []month.Month{only}
	if !p.again {
		first := p.config.from
		if through, err := month.Parse(st.Through); err == nil && first.Before(through.Add(-p.config.recheck)) {
			first = through.Add(-p.config.recheck)
		}
		months = first.Through(last)
	}
	for _, m := range months {
		if err := p.month(ctx, s, m, st); err != nil {
			return err
		}
	}
	if !p.again && !last.Before(p.config.from) {
		st.Through = last.String()
		st.forget(last.Add(-p.config.recheck))
	}
	if st.Through == "" {
		delete(p.state.Sites, s.name)
	}
	return nil
}

// month plans the messages of a site's month, unless they are what was sent.
func (p *planner) month(ctx context.Context, s site, m month.Month, st *siteState) error {
	before := st.Sent[m.String()]
	draw := p.summaries
	if p.config.jobs != "" {
		draw = p.jobs
	}
	d, err := draw(ctx, s, m, before)
	if err != nil {
		return err
	}
	p.report(s, m, d.tally)
	if d.tally.sums.Total().Jobs == 0 {
		if before != nil && before.Jobs > 0 {
			p.note("%s %s: %d jobs were sent and none are left; the receiver keeps what it has", s.name, m, before.Jobs)
		}
		return nil
	}
	if before != nil && before.Digest == d.digest && !p.again {
		return nil
	}
	for _, b := range d.batches {
		if err := p.effects(s, m, b, difference(s, m, d.tally.sums.Total(), before), before); err != nil {
			return err
		}
	}
	if n := len(d.vanished(before)); n > 0 {
		p.note("%s %s: %d rows that were sent have no job any more, because a field of their key has changed; they stay at the receiver, which counts them beside the new ones until APEL's support deletes them", s.name, m, n)
	}
	st.Sent[m.String()] = d.sent(before)
	return nil
}

// report tells what a month lacks, and its figures.
func (p *planner) report(s site, m month.Month, t *tally) {
	p.out.Notes = append(p.out.Notes, t.notes(s, m)...)
	p.out.Partial = p.out.Partial || t.left > 0
	labels := map[string]string{"site": s.name, "month": m.String()}
	p.out.Gauges = append(p.out.Gauges,
		sdk.Gauge{Name: "jobs", Labels: labels, Value: float64(t.sums.Total().Jobs)},
		sdk.Gauge{Name: "left_out", Labels: labels, Value: float64(t.left)})
}

// difference says in a line what the receiver will have that it has not.
func difference(s site, m month.Month, now month.Total, before *sent) string {
	text := fmt.Sprintf("%s %s: %d jobs, %d s wall, %d s CPU", s.name, m, now.Jobs, now.Wall, now.CPU)
	if before == nil {
		return text
	}
	return fmt.Sprintf("%s (sent before: %d jobs, %d s wall, %d s CPU)", text, before.Jobs, before.Wall, before.CPU)
}

// effects adds one effect for each message.
func (p *planner) effects(s site, m month.Month, b batch, summary string, before *sent) error {
	for i, text := range b.text {
		name := []string{"site=" + s.name, "month=" + m.String(), b.what}
		if len(b.text) > 1 {
			name = append(name, fmt.Sprintf("part=%d/%d", i+1, len(b.text)))
		}
		load := payload{At: p.now.UTC(), ID: empaid(p.now, len(p.out.Effects)), data: text}
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
		show := rows.show(text)
		bytes, err := load.bytes()
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
