package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// The handshake of go-plugin between a daemon and its plugins.
const (
	CookieKey       = "BURSAR_PLUGIN"
	CookieValue     = "bursar"
	ProtocolVersion = 1
	SourceName      = "source" // the name in go-plugin's plugin set
	ActionName      = "action" // as SourceName
)

// LevelKey is the environment variable by which the daemon tells a plugin how
// much to log: debug, info, warn or error.
const LevelKey = "BURSAR_PLUGIN_LOG"

// ServeSource is the main function of a source plugin: it serves the source to
// the daemon that started the process and returns, or exits, when the daemon is
// done. The default logger of slog then writes to the daemon's log; what is
// printed to standard output and standard error gets there too, as debug lines.
//
// Started by hand, it prints what the plugin is (-h: its attributes; -mapping:
// its default mapping; -version) and exits.
func ServeSource(newSource func() Source) {
	if os.Getenv(CookieKey) != CookieValue {
		os.Exit(byHand(newSource, os.Args, os.Stdout, os.Stderr))
	}
	servePlugin(SourceName, func(s *grpc.Server) { RegisterSource(s, newSource, slog.Default()) })
}

// servePlugin serves a plugin of a kind until the daemon is done.
func servePlugin(kind string, register func(*grpc.Server)) {
	slog.SetDefault(slog.New(logHandler(os.Stderr, os.Getenv(LevelKey))))
	// A pinned plugin runs from a file without a name; this is what ps shows.
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: ProtocolVersion, MagicCookieKey: CookieKey, MagicCookieValue: CookieValue,
		},
		Plugins:    plugin.PluginSet{kind: &grpcPlugin{register: register}},
		GRPCServer: newServer,
		Logger:     hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
}

func newServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))...)
}

// grpcPlugin is the plugin as go-plugin wants it.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server)
}

// GRPCServer registers the plugin.
func (g *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	g.register(s)
	return nil
}

// GRPCClient is the daemon's side, which is not here.
func (g *grpcPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin is no client")
}

// logHandler writes lines that the daemon reads back into a log entry.
func logHandler(w io.Writer, level string) slog.Handler {
	var least slog.Level
	if least.UnmarshalText([]byte(level)) != nil {
		least = slog.LevelInfo
	}
	rename := map[string]string{slog.MessageKey: "@message", slog.LevelKey: "@level", slog.TimeKey: "@timestamp"}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if name, ok := rename[a.Key]; ok && len(groups) == 0 {
			a.Key = name
		}
		if a.Key == "@level" {
			a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
		}
		return a
	}})
}

// byHand serves a person who starts the plugin, and returns the exit code.
func byHand(newSource func() Source, args []string, out, errs io.Writer) int {
	d := newSource().Describe().withDefaults()
	arg := ""
	if len(args) > 1 {
		arg = strings.TrimLeft(args[1], "-")
	}
	switch arg {
	case "h", "help":
		introduceSource(out, d)
		printSettings(out, d.Settings)
		printAttributes(out, d)
		return 0
	case "version":
		fmt.Fprintln(out, d.Type, d.Version)
		return 0
	case "mapping":
		fmt.Fprintln(out, strings.TrimSpace(d.Mapping))
		return 0
	}
	introduceSource(errs, d)
	fmt.Fprintln(errs, "\nThe agent starts it; run standalone, it only supports -h, -mapping and -version.")
	return 1
}

func introduceSource(w io.Writer, d Description) {
	fmt.Fprintf(w, "bursar source plugin %q, version %s (plugin protocol %d)\n", d.Type, d.Version, ProtocolVersion)
	fmt.Fprintf(w, "Used in an agent's configuration as: source %q \"<label>\" { config { … } }\n", d.Type)
}

func printAttributes(w io.Writer, d Description) {
	fmt.Fprintln(w, "\nAttributes, which a mapping names as job.<name>:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range d.Attributes {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", a.Name, a.Type, a.Doc)
	}
	_ = t.Flush()
	if d.Mapping != "" {
		fmt.Fprintln(w, "\nDefault mapping (record block):")
		fmt.Fprintln(w, strings.TrimSpace(d.Mapping))
	}
}
