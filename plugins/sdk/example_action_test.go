package sdk_test

import (
	"context"
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// A whole plugin: each month it has a program mail what every group has used.
func ExampleServeAction() {
	sdk.ServeAction(func() sdk.Action { return new(mail) })
}

type mail struct {
	Program string `hcl:"program,optional" default:"/usr/bin/mail" doc:"what sends a mail"`
	To      string `hcl:"to" doc:"who gets it"`
}

func (m *mail) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{Type: "mail", Version: "1.0.0", Class: sdk.ClassAtMostOnce, Schedule: "@monthly", Commands: "to send mails", Settings: m}
}

func (m *mail) Configure(_ context.Context, cfg *sdk.Config) error {
	return cfg.Decode(m)
}

func (m *mail) Plan(ctx context.Context, _ sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	var text string
	query := &v1.UsageQuery{Window: "last-month", By: "group_id", Measure: "Cores", Unit: "hour"}
	for row, err := range data.Usage(ctx, query) {
		if err != nil {
			return sdk.Plan{}, err
		}
		text += fmt.Sprintf("%s: %s core-hours\n", row.Group["group_id"], row.Measures["Cores"])
	}
	if text == "" {
		return sdk.Plan{Notes: []string{"nothing was used last month"}}, nil
	}
	return sdk.Plan{Effects: []sdk.Effect{{Name: "to=" + m.To, Summary: "mail the usage of last month", Payload: []byte(text), Show: text}}}, nil
}

func (m *mail) Execute(ctx context.Context, a sdk.Attempt, world *sdk.World) sdk.Result {
	out, err := world.Run(ctx, sdk.Program{Arguments: []string{m.Program, "-s", "usage", m.To}, Input: a.Effect.Payload})
	switch {
	case sdk.NotRun(err):
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	case err != nil || out.Status != 0:
		return sdk.Result{Outcome: sdk.Unknown, Message: fmt.Sprintf("%s ended with %d: %s (%v)", m.Program, out.Status, out.Error, err)}
	}
	return sdk.Result{Outcome: sdk.Done}
}
