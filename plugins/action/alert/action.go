package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const version = "1.0.0"

// action watches rules and tells receivers what changes.
type action struct {
	config config
}

// Describe implements sdk.Action. The class is at-most-once, for the mails: a post whose
// outcome is unknown is made good by a later run.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "alert", Version: version, Class: sdk.ClassAtMostOnce, Schedule: "1m", Deadline: mail.Deadline, Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	var err error
	a.config, err = readConfig(cfg)
	return err
}

// Plan implements sdk.Action: the rules are evaluated, and each receiver is told what has
// changed since the last message that it took.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	p, err := newPlanner(&a.config, start, data)
	if err != nil {
		return sdk.Plan{}, err
	}
	if err := p.followOrders(); err != nil {
		return sdk.Plan{}, err
	}
	p.setZone(ctx)
	if err := p.readOutcomes(ctx); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.evaluateRules(ctx); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.planMessages(); err != nil {
		return sdk.Plan{}, err
	}
	return p.endPlan()
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	m, err := readEffect(&t.Effect)
	if err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	r := a.config.findReceiver(m.Receiver)
	if r == nil || r.receiverKind() != m.Kind {
		return sdk.Result{Outcome: sdk.Rejected, Message: "the configuration has no receiver " + m.Receiver + " of this kind any more"}
	}
	if r.server != nil {
		return withoutRepetition(r.server.Send(ctx, t.Effect.Payload), sdk.Retry)
	}
	var p posted
	if m.Kind == kindWebhook && json.Unmarshal(t.Effect.Payload, &p) == nil {
		t.Key = p.ID // the same for the same changes, in a later run too
	}
	return withoutRepetition(r.post.Post(ctx, t), sdk.Retry, sdk.Unknown)
}

// notDelivered begins the outcome of an effect that the next run makes good.
const notDelivered = "not delivered, a later run sends it: "

// withoutRepetition makes of an outcome after which the same may be sent again one that ends the effect:
// while it is tried here, no rule is looked at.
func withoutRepetition(r sdk.Result, outcomes ...sdk.Outcome) sdk.Result {
	if slices.Contains(outcomes, r.Outcome) {
		return sdk.Result{Outcome: sdk.Rejected, Message: notDelivered + r.Message}
	}
	return r
}

// Probe implements sdk.Prober. SMTP has no question whether a mail was taken. What is posted
// has keys, so a later run posts it again.
func (a *action) Probe(_ context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	if m, err := readEffect(&t.Effect); err == nil && m.Kind != kindMail {
		return sdk.Result{Outcome: sdk.Rejected, Message: notDelivered + "the node that posted it stopped"}
	}
	return sdk.Result{Outcome: sdk.Unknown, Message: "look for its message id in the log of the mail server"}
}

// sent is what the name of an effect says: of which kind its receiver is, and its name.
type sent struct{ Kind, Receiver string }

func readEffect(e *sdk.Effect) (sent, error) {
	words := strings.Fields(e.Name)
	if len(words) < 3 {
		return sent{}, errors.New("the effect is not a message of an alert")
	}
	return sent{words[0], words[1]}, nil
}
