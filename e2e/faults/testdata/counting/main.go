// Counting is an action plugin, and a program for one, whose effects are lines in a
// file: they can be counted. What it is its name says: bursar-action-countset sets,
// -countkeyed replaces by key, -countonce does at most once and -countprobe too, and
// knows afterwards whether it did; any other name is a program that an action runs.
//
// A file, the gate, has where an effect is to stop, before it happens or after it and
// before anybody knows, and the name of the file in which it says that it waits.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

var classes = map[string]sdk.EffectClass{
	"countset": sdk.ClassSet, "countkeyed": sdk.ClassKeyed, "countonce": sdk.ClassAtMostOnce, "countprobe": sdk.ClassAtMostOnce,
}

func main() {
	kind := strings.TrimPrefix(filepath.Base(os.Args[0]), "bursar-action-")
	switch {
	case classes[kind] == 0:
		os.Exit(program())
	case kind == "countprobe":
		sdk.ServeAction(func() sdk.Action { return &prober{counting{kind: kind}} })
	default:
		sdk.ServeAction(func() sdk.Action { return &counting{kind: kind} })
	}
}

// line is an effect in the target, and one that has begun in gate.begun.
type line struct {
	Key     string `json:"key"`
	Fence   uint64 `json:"fence"`
	Attempt int    `json:"attempt"`
	Name    string `json:"name"`
	Value   string `json:"value"`
}

// target is a file that counts effects, and its gate.
type target struct{ path, gate string }

// happen has an effect happen.
func (t target) happen(ctx context.Context, l line) error {
	t.stop(ctx, "before", l)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := put(t.path, l); err != nil {
		return err
	}
	t.stop(ctx, "after", l)
	return nil
}

// put adds a line to a file, and returns when it is on the disk.
func put(path string, l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// stop waits while the gate names this point.
func (t target) stop(ctx context.Context, point string, l line) {
	for told := false; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(t.gate)
		at, begun, _ := strings.Cut(string(text), " ")
		if err != nil || at != point {
			return
		}
		if !told {
			told = put(begun, l) == nil
		}
	}
}

// counting is the plugin.
type counting struct {
	kind   string
	target target
}

// Describe implements sdk.Action.
func (c *counting) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{Type: c.kind, Version: "1", Class: classes[c.kind], Schedule: "1s", Deadline: 10 * time.Minute}
}

// Configure implements sdk.Action.
func (c *counting) Configure(_ context.Context, cfg *sdk.Config) error {
	var s struct {
		Target string `hcl:"target"`
		Gate   string `hcl:"gate"`
	}
	err := cfg.Decode(&s)
	c.target = target{s.Target, s.Gate}
	return err
}

// Plan implements sdk.Action: two effects, of which one has how many records there
// are, and the other how many plans' states have counted.
func (c *counting) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	body, err := data.Get(ctx, "/v1/status", "application/json")
	if err != nil {
		return sdk.Plan{}, err
	}
	defer body.Close()
	var status struct {
		Records json.Number `json:"records"`
	}
	text, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	if err != nil {
		return sdk.Plan{}, err
	}
	n, err := strconv.Atoi("0" + string(start.State))
	if err != nil {
		return sdk.Plan{}, err
	}
	p := sdk.Plan{State: []byte(strconv.Itoa(n + 1))}
	for _, e := range []struct{ name, value string }{{"records", status.Records.String()}, {"plans", strconv.Itoa(n)}} {
		p.Effects = append(p.Effects, sdk.Effect{Name: e.name, Summary: e.value, Payload: []byte(e.value)})
	}
	return p, nil
}

// Execute implements sdk.Action.
func (c *counting) Execute(ctx context.Context, a sdk.Attempt, _ *sdk.World) sdk.Result {
	err := c.target.happen(ctx, line{Key: a.Key, Fence: a.Fence, Attempt: a.Number, Name: a.Effect.Name, Value: string(a.Effect.Payload)})
	if err != nil {
		return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
	}
	return sdk.Result{Outcome: sdk.Done, Reference: fmt.Sprint("fence ", a.Fence)}
}

// prober is one that finds its effects again.
type prober struct{ counting }

// Probe implements sdk.Prober.
func (p *prober) Probe(_ context.Context, a sdk.Attempt, _ *sdk.World) sdk.Result {
	found := false
	err := each(p.target.path, func(l line) { found = found || l.Key == a.Key })
	switch {
	case err != nil:
		return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
	case found:
		return sdk.Result{Outcome: sdk.Done, Message: "its line is there"}
	}
	return sdk.Result{Outcome: sdk.Retry, Message: "its line is not there"}
}

// program is what an action runs: "set TARGET GATE NAME VALUE" sets a value, "get
// TARGET NAME" prints the last one, and "take TARGET GATE" takes an input as exec
// gives it.
func program() int {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 5 && args[0] == "set":
		err = target{args[1], args[2]}.happen(context.Background(), line{Name: args[3], Value: args[4]})
	case len(args) == 3 && args[0] == "get":
		err = show(args[1], args[2])
	case len(args) == 3 && args[0] == "take":
		err = take(target{args[1], args[2]})
	default:
		err = fmt.Errorf("what is %q?", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "counting:", err)
		return 1
	}
	return 0
}

func take(t target) error {
	var in struct {
		Changes []struct {
			Seq uint64 `json:"seq"`
		} `json:"changes"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(os.Getenv(name), 10, 64)
		return n
	}
	l := line{Key: os.Getenv("BURSAR_KEY"), Fence: number("BURSAR_FENCE"), Attempt: int(number("BURSAR_ATTEMPT"))}
	for _, c := range in.Changes {
		l.Value += fmt.Sprint(c.Seq, " ")
	}
	return t.happen(context.Background(), l)
}

// show prints the last value of a name; 0 when there is none.
func show(path, name string) error {
	value := "0"
	err := each(path, func(l line) {
		if l.Name == name {
			value = l.Value
		}
	})
	fmt.Println("value =", value)
	return err
}

// each calls f with the lines of a target, in order.
func each(path string, f func(line)) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err
		}
		f(l)
	}
	return lines.Err()
}
