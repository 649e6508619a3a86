package main

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// action sets priorities.
type action struct{ config config }

// Describe implements sdk.Action.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "priority", Version: "1.0.0", Class: sdk.ClassSet, Schedule: "@hourly", Deadline: 10 * time.Minute,
		Commands: "the commands of its config block, which set and read priorities", Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	a.config = decodeConfig(cfg)
	return cfg.Err()
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	return a.config.planPriorities(ctx, start, data)
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, world *sdk.World) sdk.Result {
	return a.config.setPriority(ctx, t, world)
}
