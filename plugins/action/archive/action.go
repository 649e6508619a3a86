package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const version = "1.0.0"

// action writes archives.
type action struct{ config config }

// Describe implements sdk.Action. The class is keyed: each attempt writes files of its own,
// and the store refuses to remove what differs from them.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "archive", Version: version, Class: sdk.ClassKeyed, Schedule: "30 3 * * *", Deadline: time.Hour, Settings: new(settings),
		Archives: "to remove records that were archived, and to restore them",
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
	p := &planner{config: &a.config, start: start, data: data}
	return p.planArchives(ctx)
}

// The steps, each of which is an effect.
const (
	stepWrite   = "write"   // a file of a month, with its manifest
	stepRemove  = "remove"  // of what was written from the store
	stepTidy    = "tidy"    // away what a later file of the same archive took the place of
	stepVerify  = "verify"  // files, manifest and store agree
	stepRestore = "restore" // what was removed
	stepRead    = "read"    // what was removed, for an answer of the daemon
)

// step is the payload of an effect.
type step struct {
	Version int    `json:"version"`
	Do      string `json:"do"`
	Archive string `json:"archive"` // its name, such as 2024-03 or 2024-03-2
}

const stepVersion = 1

func (s step) encodeStep() []byte {
	s.Version = stepVersion
	out, _ := json.Marshal(s) // of texts
	return out
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, w *sdk.World) sdk.Result {
	var s step
	err := json.Unmarshal(t.Effect.Payload, &s)
	if err == nil && s.Version != stepVersion {
		err = fmt.Errorf("the effect has format %d; run the newer plugin", s.Version)
	}
	var n name
	if err == nil {
		n, err = parseName(s.Archive)
	}
	if err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	e := &execution{config: &a.config, attempt: t, name: n, world: w, data: w.Data()}
	said, err := e.doStep(ctx, s.Do)
	switch {
	case err == nil:
		return sdk.Result{Outcome: sdk.Done, Message: said, Reference: s.Archive}
	case isFinal(err):
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
}
