package main

import (
	"bytes"
	"context"

	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const version = "1.0.0"

// action sends reports.
type action struct {
	config config
}

// Describe implements sdk.Action. The class is at-most-once: servers of mail do not know a
// second copy of a message, so one whose outcome is unknown is not sent again by itself.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "report", Version: version, Class: sdk.ClassAtMostOnce, Schedule: "0 7 * * *", Deadline: mail.Deadline, Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	var err error
	a.config, err = decodeConfig(cfg)
	return err
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	p, err := newPlanner(ctx, &a.config, start, data)
	if err != nil {
		return sdk.Plan{}, err
	}
	return p.planMails(ctx)
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	switch page := isPage(t.Effect.Payload); {
	case page && a.config.Site != nil:
		return a.config.Site.publishPage(ctx, t.Effect.Payload, a.config.templates)
	case !page && a.config.server != nil:
		return a.config.server.Send(ctx, t.Effect.Payload)
	}
	return sdk.Result{Outcome: sdk.Rejected, Message: "the configuration has no such block any more, mail or site; skip it"}
}

// Probe implements sdk.Prober. SMTP has no question whether a mail was taken.
func (a *action) Probe(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	if isPage(t.Effect.Payload) && a.config.Site != nil {
		return a.config.Site.probePage(ctx, t.Effect.Payload)
	}
	return sdk.Result{Outcome: sdk.Unknown, Message: "look for its message id in the log of the mail server"}
}

// isPage tells a page, which is JSON, from a mail, which begins with a header.
func isPage(payload []byte) bool { return bytes.HasPrefix(payload, []byte("{")) }
