package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const version = "1.0.0"

// action writes and mails the utilization of a period.
type action struct {
	config config
}

// Describe implements sdk.Action. The class is at-most-once, for the mails; a file is written
// again by hand without harm.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "energy", Version: version, Class: sdk.ClassAtMostOnce, Schedule: "0 7 * * *", Deadline: mail.Deadline, Settings: new(settings),
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
	return p.planTables(ctx)
}

// file is the payload of an effect that writes a file.
type file struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Text    string `json:"text"`
}

const fileVersion = 1

// isFile tells a file, which is JSON, from a mail, which begins with a header.
func isFile(payload []byte) bool { return bytes.HasPrefix(payload, []byte("{")) }

func readFile(payload []byte) (f file, err error) {
	if err := json.Unmarshal(payload, &f); err != nil {
		return f, fmt.Errorf("the effect is not a file: %w", err)
	}
	if f.Version != fileVersion {
		return f, fmt.Errorf("the effect has format %d; run the newer plugin", f.Version)
	}
	return f, nil
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	switch isFile := isFile(t.Effect.Payload); {
	case isFile && a.config.files != nil:
		f, err := readFile(t.Effect.Payload)
		if err != nil {
			return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
		}
		if err := filestore.WriteFile(ctx, a.config.files, f.Name, []byte(f.Text)); err != nil {
			return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
		}
		return sdk.Result{Outcome: sdk.Done, Message: "written to " + a.config.files.String(), Reference: f.Name}
	case !isFile && a.config.server != nil:
		return a.config.server.Send(ctx, t.Effect.Payload)
	}
	return sdk.Result{Outcome: sdk.Rejected, Message: "the configuration has no mail or directory for it any more; skip it"}
}

// Probe implements sdk.Prober: a file can be looked at. SMTP has no question whether a mail was
// taken.
func (a *action) Probe(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	f, err := readFile(t.Effect.Payload)
	if !isFile(t.Effect.Payload) || err != nil || a.config.files == nil {
		return sdk.Result{Outcome: sdk.Unknown, Message: "look for its message id in the log of the mail server"}
	}
	text, err := filestore.ReadFile(ctx, a.config.files, f.Name, sdk.MaxPayload)
	switch {
	case err == nil && string(text) == f.Text:
		return sdk.Result{Outcome: sdk.Done, Message: "it is in " + a.config.files.String(), Reference: f.Name}
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return sdk.Result{Outcome: sdk.Retry, Message: "it is not in " + a.config.files.String()}
	}
	return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
}
