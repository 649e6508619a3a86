package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// setter sets the priority of one group.
type setter struct {
	*config
	world *sdk.World
	load  payload
}

// setPriority sets a priority, unless what is read back says that it is set. What cannot
// be read is not set either: a receiver that does not answer is asked again later.
func (c *config) setPriority(ctx context.Context, t sdk.Attempt, world *sdk.World) sdk.Result {
	h := setter{config: c, world: world}
	var err error
	if h.load, err = readPayload(t.Effect.Payload); err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	before, failed := h.readBack(ctx)
	switch {
	case failed != nil:
		return *failed
	case before == h.priorityText():
		return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprintf("it is %s already", before)}
	}
	for _, command := range h.load.Commands {
		if _, failed := h.runProgram(ctx, command); failed != nil {
			return *failed
		}
	}
	after, failed := h.readBack(ctx)
	switch {
	case failed != nil:
		return *failed
	case h.load.Read == nil:
		return sdk.Result{Outcome: sdk.Done, Message: "set to " + h.priorityText()}
	case after != h.priorityText():
		return sdk.Result{Outcome: sdk.Retry, Message: fmt.Sprintf("%s was set, and then %s was read back; before it was %s", h.priorityText(), after, before)}
	}
	return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprintf("set to %s, before it was %s", after, before)}
}

func (h *setter) priorityText() string { return strconv.FormatInt(h.load.Priority, 10) }

// readBack is the priority as the scheduler has it; "" when nothing is read.
func (h *setter) readBack(ctx context.Context) (string, *sdk.Result) {
	if h.load.Read == nil {
		return "", nil
	}
	pattern, err := regexp.Compile(h.load.Pattern)
	if err != nil || pattern.NumSubexp() != 1 {
		return "", &sdk.Result{Outcome: sdk.Rejected, Message: fmt.Sprintf("the pattern %q cannot be used", h.load.Pattern)}
	}
	out, failed := h.runProgram(ctx, h.load.Read)
	if failed != nil {
		return "", failed
	}
	value := ""
	for i, m := range pattern.FindAllSubmatch(out, -1) {
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		text := strconv.FormatInt(n, 10)
		if err != nil || i > 0 && text != value {
			return "", &sdk.Result{Outcome: sdk.Retry, Message: fmt.Sprintf("%s writes no one whole number where %s says, but %.80q", commandLine(h.load.Read), h.load.Pattern, m[1])}
		}
		value = text
	}
	if value == "" {
		return "", &sdk.Result{Outcome: sdk.Retry, Message: fmt.Sprintf("%s in what %s writes is not found: %s", h.load.Pattern, commandLine(h.load.Read), firstLine(out))}
	}
	return value, nil
}

// runProgram runs a program to a good end and returns what it wrote.
func (h *setter) runProgram(ctx context.Context, command []string) ([]byte, *sdk.Result) {
	out, err := h.world.Run(ctx, sdk.Program{Arguments: command, Environment: h.programEnvironment(), Timeout: h.timeout})
	switch {
	case sdk.NotRun(err):
		return nil, &sdk.Result{Outcome: sdk.Retry, Message: fmt.Sprintf("%s was not run: %v", commandLine(command), err)}
	case err != nil:
		return nil, &sdk.Result{Outcome: sdk.Unknown, Message: fmt.Sprintf("%s: %v", commandLine(command), err)}
	case out.Status != 0:
		text := firstLine(out.Error)
		if text == "" {
			text = firstLine(out.Stdout)
		}
		return nil, &sdk.Result{Outcome: sdk.Retry, Message: fmt.Sprintf("%s ended with %d: %s", commandLine(command), out.Status, text)}
	}
	return out.Stdout, nil
}

// commandLine is a command for people.
func commandLine(command []string) string { return cutName(strings.Join(command, " ")) }

// firstLine is what a program says first, for people.
func firstLine(b []byte) string {
	const most = 300
	text, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	return string(text[:min(len(text), most)])
}
