package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const version = "1.0.0"

// action copies closed records to ClickHouse.
type action struct{ config config }

// deadline is how long an effect may take; after turn no further batch begins.
const (
	deadline = time.Hour
	turn     = 40 * time.Minute
)

// Describe implements sdk.Action. The class is keyed: a batch that is there is not written
// again, by the id that its rows have.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "warehouse", Version: version, Class: sdk.ClassKeyed, Schedule: "@change 5m", Deadline: deadline, Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	var err error
	a.config, err = readConfig(cfg)
	return err
}

// What an effect does, which is its name.
const (
	doFollow  = "follow"
	doCheck   = "check"
	doReplace = "replace"
)

// step is the payload of an effect.
type step struct {
	Version int    `json:"version"`
	Do      string `json:"do"`
	Change  uint64 `json:"change"` // of the plan: a run that comes later goes further
}

const stepVersion = 1

// memory is the state of the plan.
type memory struct {
	Version int       `json:"version"`
	Change  uint64    `json:"change"` // that the tables have
	Epoch   string    `json:"epoch"`
	Checked time.Time `json:"checked"`

	cluster string
	open    bool // some records go on
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	var last memory
	if err := json.Unmarshal(start.State, &last); len(start.State) > 0 && err != nil {
		return sdk.Plan{}, fmt.Errorf("the action's state: %w", err)
	}
	now, err := stateOf(ctx, data)
	if err == nil {
		now.open, err = hasOpenRecords(ctx, data)
	}
	if err != nil {
		return sdk.Plan{}, err
	}
	now.Checked = last.Checked
	var out sdk.Plan
	add := func(do, summary string) {
		payload, _ := json.Marshal(step{stepVersion, do, now.Change}) // of texts and numbers
		out.Effects = append(out.Effects, sdk.Effect{Name: do, Summary: summary, Payload: payload})
	}
	check, replace := start.Now.Sub(last.Checked) >= a.config.Check, false
	for argument, value := range start.Arguments {
		if value != "all" || len(start.Arguments) > 1 || argument != doCheck && argument != doReplace {
			return out, fmt.Errorf("unknown argument %s=%s: use check=all or replace=all", argument, value)
		}
		check = true
		replace = argument == doReplace
	}
	switch {
	case replace: // one effect with what follows: while one waits for its next attempt, others go on
		add(doReplace, fmt.Sprintf("remove all rows of this cluster from %s on %s, and write them anew up to change %d", a.config.Database, a.config.url.Host, now.Change))
	case check || now.open || now.Change != last.Change || now.Epoch != last.Epoch:
		add(doFollow, fmt.Sprintf("write the changes up to %d, and the records that go on, to %s on %s", now.Change, a.config.Database, a.config.url.Host))
	}
	if check {
		add(doCheck, "compare the sums of each site and month with the cluster's")
		now.Checked = start.Now
	}
	if len(out.Effects) == 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("nothing has changed since change %d", now.Change))
	}
	out.State, err = json.Marshal(now)
	return out, err
}

// stateOf asks for the last change and the epoch.
func stateOf(ctx context.Context, data *sdk.Data) (memory, error) {
	status, err := data.API().Status(ctx, &v1.Reading{})
	if err != nil {
		return memory{}, err
	}
	if status.LastChange == nil {
		return memory{}, errors.New("/v1/status: the last change is unknown; try again when the node has read its records")
	}
	changes, err := data.API().Changes(ctx, &v1.ChangesQuery{After: *status.LastChange, Limit: 1})
	return memory{Version: stepVersion, Change: *status.LastChange, Epoch: changes.Epoch, cluster: changes.Cluster}, err
}

// hasOpenRecords reports whether records go on: what they used changes without a change.
func hasOpenRecords(ctx context.Context, data *sdk.Data) (bool, error) {
	open := true
	page, err := data.API().ListRecords(ctx, &v1.ListRecordsQuery{Open: &open, Limit: 1})
	return len(page.Records) > 0, err
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, w *sdk.World) sdk.Result {
	said, err := a.executeStep(ctx, t, w)
	switch {
	case err == nil:
		return sdk.Result{Outcome: sdk.Done, Message: said}
	case isRefused(err):
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	case errors.Is(err, errLater):
		return sdk.Result{Outcome: sdk.Retry, Message: said + "; " + err.Error()}
	}
	return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
}

func (a *action) executeStep(ctx context.Context, t sdk.Attempt, w *sdk.World) (string, error) {
	var s step
	err := json.Unmarshal(t.Effect.Payload, &s)
	if err == nil && s.Version != stepVersion {
		err = fmt.Errorf("the effect has format %d; run the newer plugin", s.Version)
	}
	if err != nil {
		return "", refused{err}
	}
	session, err := openSession(&a.config)
	if err != nil {
		return "", err
	}
	defer session.close()
	if err := session.ensureTables(ctx); err != nil {
		return "", err
	}
	notes, err := session.ensureReplicas(ctx)
	if err != nil {
		return "", err
	}
	now, err := stateOf(ctx, w.Data())
	if err != nil {
		return "", err
	}
	f := &follower{feed: feed{session: session, data: w.Data(), cluster: now.cluster, epoch: now.Epoch}, fence: t.Fence, notes: notes}
	stop := time.Now().Add(turn)
	switch s.Do {
	case doReplace, doFollow:
		if s.Do == doReplace {
			err = f.replaceOnce(ctx, "ordered by effect "+t.Key)
		}
		change := uint64(0)
		if err == nil {
			change, err = f.writeRunning(ctx)
		}
		if err == nil {
			err = f.followChanges(ctx, change, stop)
		}
		if err == nil {
			err = f.removeBatches(ctx)
		}
		return f.describeRun(), err
	case doCheck:
		said, err := f.checkTables(ctx, stop)
		return cmp.Or(said, f.describeRun()), err
	}
	return "", newRefusal("unknown step %q; run the newer plugin", s.Do)
}

// describeRun says what was written.
func (f *follower) describeRun() string {
	return strings.Join(append(f.notes, fmt.Sprintf("rows written: %d, up to change %d; records that go on: %d", f.written, f.at.last, f.open)), "; ")
}
