package main

import (
	"context"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/handover"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const version = "1.0.0"

// action posts to a receiver.
type action struct {
	input    *handover.Question
	receiver *receiver
}

// Describe implements sdk.Action. The class is keyed, because a webhook of which the
// answer was lost has to be posted again or no one could rely on it: a receiver knows
// a second post by its key, and what is posted is absolute, so that one which does
// not look at the key can still put it over what it has.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "webhook", Version: version, Class: sdk.ClassKeyed, Schedule: "@hourly", Deadline: maxTimeout + time.Minute,
		Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	var s settings
	_ = cfg.Decode(&s) // it is in what Err returns
	a.input, a.receiver = s.Question(cfg, s.Input), readReceiver(cfg, &s)
	return cfg.Err()
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	h, err := a.input.Make(ctx, start, data)
	if err != nil {
		return sdk.Plan{}, err
	}
	return h.Plan("post", a.receiver.about(), func(what string) string {
		if what == "" {
			what = "the time"
		}
		return fmt.Sprintf("post %s to %s", what, a.receiver.shown)
	}), nil
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	return a.receiver.post(ctx, t)
}
