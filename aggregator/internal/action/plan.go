package action

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"regexp"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Bounds of a plan. What is beyond them is a defect of the plugin.
const (
	maxEffects  = 10_000
	maxPayloads = 64 << 20 // bytes of all payloads
	maxState    = 64 << 10
	maxShow     = 64 << 10
	maxNotes    = 100
	maxNote     = 512
	maxGauges   = 200
	maxLabels   = 10
)

var metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)

// checkPlan returns why a plan cannot be kept.
func checkPlan(p *sdk.Plan) error {
	if len(p.Effects) > maxEffects {
		return fmt.Errorf("the plan has %d effects; at most %d are allowed", len(p.Effects), maxEffects)
	}
	if len(p.State) > maxState {
		return fmt.Errorf("the plan's state has %d bytes; at most %d are allowed", len(p.State), maxState)
	}
	names, size := map[string]bool{}, 0
	for i := range p.Effects {
		e := &p.Effects[i]
		size += len(e.Payload)
		switch {
		case e.Name == "" || len(e.Name) > maxNote:
			return fmt.Errorf("effect %d has a name of %d bytes; want 1 to %d", i, len(e.Name), maxNote)
		case names[e.Name]:
			return fmt.Errorf("two effects are named %q", e.Name)
		case size > maxPayloads:
			return fmt.Errorf("the payloads have more than %d bytes", maxPayloads)
		}
		names[e.Name] = true
	}
	return checkGauges(p.Gauges)
}

func checkGauges(gauges []sdk.Gauge) error {
	if len(gauges) > maxGauges {
		return fmt.Errorf("the plan has %d gauges; at most %d are allowed", len(gauges), maxGauges)
	}
	for _, g := range gauges {
		if !metricName.MatchString(g.Name) || math.IsNaN(g.Value) || math.IsInf(g.Value, 0) || len(g.Labels) > maxLabels {
			return fmt.Errorf("the gauge %q cannot be shown", cutText(g.Name, maxWord))
		}
		for name, value := range g.Labels {
			if !metricName.MatchString(name) || name == "action" || len(value) > maxWord {
				return fmt.Errorf("the label %q of the gauge %s cannot be shown", cutText(name, maxWord), g.Name)
			}
		}
	}
	return nil
}

// keepPlan writes a plan down: the run is there with the command that moves the state
// on, and not before.
func (r *runner) keepPlan(ctx context.Context, p *picture, run *Run, made *sdk.Plan) error {
	fillRun(run, made)
	docs := r.planDocuments(p, run, made)
	was := p.state
	if documentsSize(docs) > commandBytes {
		var err error
		if was, err = r.stageDocuments(ctx, p, docs); err != nil {
			return err
		}
		docs = nil
	}
	state := *was.value
	state.Claim, state.Problem = "", nil
	state.Next, state.Current, state.Last, state.Seq = run.Number+1, run.Number, run.Planned, p.seq
	if run.Why == WhyOrder {
		state.Requests = state.Requests[1:]
	}
	if sdk.EffectClass(run.Class) == sdk.ClassAtMostOnce {
		docs = append(docs, state.takeRunState(r.set.Name, run)...)
	}
	docs = append(docs, newDocument(runSpace, r.set.Name.runKey(run.Number), encodeDocument(run)), was.changedTo(&state))
	return r.writeUnder(ctx, was.unchangedCondition(), docs...)
}

// takeRunState makes the state of a run the one that counts, and returns what removes the
// one before.
func (c *State) takeRunState(name Name, run *Run) (docs []store.Document) {
	if run.Planned > c.Since {
		c.Since = run.Planned
	}
	if !run.State || run.Number <= c.Kept {
		return nil
	}
	if c.Kept != 0 {
		docs = append(docs, newDocument(stateSpace, name.runKey(c.Kept), nil))
	}
	c.Kept = run.Number
	return docs
}

// fillRun takes what a plan says beside its effects.
func fillRun(run *Run, made *sdk.Plan) {
	run.Effects, run.Partial, run.State = len(made.Effects), made.Partial, made.State != nil
	for i, n := range made.Notes {
		if i == maxNotes-1 && len(made.Notes) > maxNotes {
			run.Notes = append(run.Notes, fmt.Sprintf("and %d more", len(made.Notes)-i))
			break
		}
		run.Notes = append(run.Notes, cutText(n, maxNote))
	}
	for _, g := range made.Gauges {
		run.Gauges = append(run.Gauges, Gauge{Name: g.Name, Labels: g.Labels, Value: g.Value})
	}
}

// planDocuments are those of the effects of a plan, and of its state.
func (r *runner) planDocuments(p *picture, run *Run, made *sdk.Plan) []store.Document {
	var docs []store.Document
	name := r.set.Name
	if made.State != nil {
		docs = append(docs, newDocument(stateSpace, name.runKey(run.Number), encodeDocument(&content{version: version{Format}, Payload: made.State})))
	}
	for i := range made.Effects {
		e := &made.Effects[i]
		bytes, part := encodeDocument(&content{version: version{Format}, Payload: e.Payload, Show: cutText(e.Show, maxShow)}), 0
		for ; len(bytes) > 0; part++ {
			n := min(len(bytes), partBytes)
			docs = append(docs, newDocument(payloadSpace, name.partKey(run.Number, i, part), bytes[:n]))
			bytes = bytes[n:]
		}
		docs = append(docs, newDocument(effectSpace, name.effectKey(run.Number, i), encodeDocument(&Effect{
			version: version{Format}, Name: e.Name, Summary: cutText(e.Summary, maxNote), Digest: digestOf(e.Payload), Size: len(e.Payload), Parts: part,
			State: Planned, Key: effectKey(p.cluster, name, run, i),
		})))
	}
	return docs
}

// effectKey is the same for all attempts at an effect, and for no other effect: of no
// other cluster, and not after a restore either, since the run's time is in it.
func effectKey(cluster string, name Name, run *Run, effect int) string {
	return digestOf(fmt.Appendf(nil, "%s\n%s\n%d\n%d\n%d", cluster, name, run.Number, run.Planned, effect))[:32]
}

func documentsSize(docs []store.Document) (n int) {
	for i := range docs {
		n += len(docs[i].Key) + len(docs[i].Value) + 64
	}
	return n
}

// stageDocuments writes documents in several commands, under a claim on the state: no one
// else's are written among them. It returns the claimed state.
func (r *runner) stageDocuments(ctx context.Context, p *picture, docs []store.Document) (held[State], error) {
	state := *p.state.value
	state.Claim = rand.Text()
	claimed := p.state
	claimed.value, claimed.raw = &state, encodeDocument(&state)
	if err := r.writeUnder(ctx, p.state.unchangedCondition(), claimed.unchangedCondition()); err != nil {
		return claimed, err
	}
	for len(docs) > 0 {
		n := 1
		for n < len(docs) && documentsSize(docs[:n+1]) <= commandBytes {
			n++
		}
		if err := r.writeUnder(ctx, claimed.unchangedCondition(), docs[:n]...); err != nil {
			return claimed, err
		}
		docs = docs[n:]
	}
	return claimed, nil
}
