package sdk

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"google.golang.org/grpc"
)

// ServeAction is the main function of an action plugin, as [ServeSource] is that
// of a source. Started by hand, it prints what the plugin is (-h, -version) and
// exits.
func ServeAction(newAction func() Action) {
	if os.Getenv(CookieKey) != CookieValue {
		os.Exit(actionByHand(newAction, os.Args, os.Stdout, os.Stderr))
	}
	servePlugin(ActionName, func(s *grpc.Server) { RegisterAction(s, newAction, slog.Default()) })
}

// actionByHand serves a person who starts the plugin, and returns the exit code.
func actionByHand(newAction func() Action, args []string, out, errs io.Writer) int {
	d := newAction().Describe().withDefaults()
	arg := ""
	if len(args) > 1 {
		arg = strings.TrimLeft(args[1], "-")
	}
	switch arg {
	case "h", "help":
		d.introduceAction(out)
		printSettings(out, d.Settings)
		return 0
	case "version":
		fmt.Fprintln(out, d.Type, d.Version)
		return 0
	}
	d.introduceAction(errs)
	fmt.Fprintln(errs, "\nThe aggregator starts it; run standalone, it only supports -h and -version.")
	return 1
}

func (d ActionDescription) introduceAction(w io.Writer) {
	fmt.Fprintf(w, "bursar action plugin %q, version %s (plugin protocol %d)\n", d.Type, d.Version, ProtocolVersion)
	fmt.Fprintf(w, "Used in an aggregator's configuration as: action %q \"<label>\" { config { … } }\n\n", d.Type)
	schedule := d.Schedule
	if schedule == "" {
		schedule = "only on request"
	}
	fmt.Fprintf(w, "Runs:      %s, unless the block says otherwise\n", schedule)
	fmt.Fprintf(w, "Class:     %s\n", d.Class)
	fmt.Fprintf(w, "Deadline:  %s for an effect\n", d.Deadline)
	if d.Commands != "" {
		fmt.Fprintf(w, "Programs:  %s\n", d.Commands)
	}
}

// String says what the class is, for people.
func (c EffectClass) String() string {
	switch c {
	case ClassSet:
		return "set (it sets absolute values)"
	case ClassKeyed:
		return "keyed (the receiver replaces what has the same key)"
	case ClassAtMostOnce:
		return "at-most-once (it is never repeated by itself)"
	}
	return fmt.Sprintf("class %d", uint8(c))
}
