// Command hanger is a plugin that hangs in the call that its name says:
// bursar-source-hang-collect in Collect, bursar-action-hang-plan in Plan. As
// bursar-source-told it hangs in none, and is complete up to the time in the file beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func main() {
	name := filepath.Base(os.Args[0])
	if typ, ok := strings.CutPrefix(name, "bursar-action-"); ok {
		sdk.ServeAction(func() sdk.Action { return &action{hanger(typ)} })
		return
	}
	typ := strings.TrimPrefix(name, "bursar-source-")
	sdk.ServeSource(func() sdk.Source { return &source{hanger(typ)} })
}

// hanger is the type of a plugin.
type hanger string

func (h hanger) in(call string) {
	if strings.HasPrefix(string(h), "hang-"+call) {
		select {}
	}
}

type source struct{ hanger }

func (s *source) Describe() sdk.Description {
	s.in("describe")
	return sdk.Description{Type: string(s.hanger), Version: "1", Push: s.hanger == "hang-collect-pushed" || s.hanger == "hang-ends",
		Attributes: []sdk.Attribute{{Name: "id", Type: sdk.TypeString}}}
}

func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.in("configure")
	return cfg.Err()
}

func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	switch {
	case s.hanger == "hang-count" && from.Window == nil:
		return out.Send(ctx, sdk.Batch{Checkpoint: []byte("c"), Watermark: time.Now()})
	case s.hanger == "told":
		text, err := os.ReadFile(os.Args[0] + ".complete")
		if err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			return err
		}
		return out.Send(ctx, sdk.Batch{Checkpoint: []byte("c"), Watermark: at})
	case s.hanger == "hang-stopped":
		return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case s.hanger == "hang-empty":
		for ctx.Err() == nil {
			if err := out.Send(ctx, sdk.Batch{}); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	case s.hanger == "hang-talks":
		for {
			fmt.Println("I am busy")
			time.Sleep(10 * time.Millisecond)
		}
	}
	s.in("collect")
	return nil
}

func (s *source) Count(context.Context, sdk.Window) (int64, error) {
	s.in("count")
	return 0, nil
}

type action struct{ hanger }

func (a *action) Describe() sdk.ActionDescription {
	a.in("describe")
	d := sdk.ActionDescription{Type: string(a.hanger), Version: "1", Class: sdk.ClassSet, Deadline: 2 * time.Second}
	if a.hanger == "hang-probe" {
		d.Class = sdk.ClassAtMostOnce
	}
	return d
}

func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	a.in("configure")
	return cfg.Err()
}

func (a *action) Plan(context.Context, sdk.PlanStart, *sdk.Data) (sdk.Plan, error) {
	a.in("plan")
	return sdk.Plan{Effects: []sdk.Effect{{Name: "effect"}}}, nil
}

func (a *action) Execute(context.Context, sdk.Attempt, *sdk.World) sdk.Result {
	a.in("execute")
	return sdk.Result{Outcome: sdk.Unknown}
}

func (a *action) Probe(context.Context, sdk.Attempt, *sdk.World) sdk.Result {
	a.in("probe")
	return sdk.Result{Outcome: sdk.Unknown}
}
