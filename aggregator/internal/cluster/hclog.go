package cluster

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// hcLog lets raft write to a slog.Logger. Levels map one to one; trace becomes
// debug. Its level is that of the slog handler and cannot be set.
type hcLog struct {
	to   *slog.Logger
	name string
	args []any
}

func newHCLog(to *slog.Logger) hclog.Logger { return &hcLog{to: to} }

func slogLevel(l hclog.Level) slog.Level {
	switch {
	case l <= hclog.Debug:
		return slog.LevelDebug
	case l == hclog.Info:
		return slog.LevelInfo
	case l == hclog.Warn:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

// Log writes one line at level.
func (h *hcLog) Log(level hclog.Level, msg string, args ...any) {
	l := slogLevel(level)
	if !h.to.Enabled(context.Background(), l) {
		return
	}
	h.to.Log(context.Background(), l, "raft: "+msg, evaluateFormats(args)...)
}

// evaluateFormats evaluates hclog's lazy formats; slog would print their parts.
func evaluateFormats(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			a = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
		out[i] = a
	}
	return out
}

// Trace writes at slog's debug level.
func (h *hcLog) Trace(msg string, args ...any) { h.Log(hclog.Trace, msg, args...) }

// Debug writes at slog's debug level.
func (h *hcLog) Debug(msg string, args ...any) { h.Log(hclog.Debug, msg, args...) }

// Info writes at slog's info level.
func (h *hcLog) Info(msg string, args ...any) { h.Log(hclog.Info, msg, args...) }

// Warn writes at slog's warn level.
func (h *hcLog) Warn(msg string, args ...any) { h.Log(hclog.Warn, msg, args...) }

// Error writes at slog's error level.
func (h *hcLog) Error(msg string, args ...any) { h.Log(hclog.Error, msg, args...) }

func (h *hcLog) isEnabled(l slog.Level) bool { return h.to.Enabled(context.Background(), l) }

// IsTrace reports whether trace lines are written.
func (h *hcLog) IsTrace() bool { return h.isEnabled(slog.LevelDebug) }

// IsDebug reports whether debug lines are written.
func (h *hcLog) IsDebug() bool { return h.isEnabled(slog.LevelDebug) }

// IsInfo reports whether info lines are written.
func (h *hcLog) IsInfo() bool { return h.isEnabled(slog.LevelInfo) }

// IsWarn reports whether warnings are written.
func (h *hcLog) IsWarn() bool { return h.isEnabled(slog.LevelWarn) }

// IsError reports whether errors are written.
func (h *hcLog) IsError() bool { return h.isEnabled(slog.LevelError) }

// ImpliedArgs returns what With has added.
func (h *hcLog) ImpliedArgs() []any { return h.args }

// With returns a logger that adds args to each line.
func (h *hcLog) With(args ...any) hclog.Logger {
	all := append(append([]any{}, h.args...), args...)
	return &hcLog{to: h.to.With(evaluateFormats(args)...), name: h.name, args: all}
}

// Name returns the logger's name.
func (h *hcLog) Name() string { return h.name }

// Named returns a logger whose name is extended by name.
func (h *hcLog) Named(name string) hclog.Logger {
	if h.name != "" {
		name = h.name + "." + name
	}
	return h.ResetNamed(name)
}

// ResetNamed returns a logger with another name.
func (h *hcLog) ResetNamed(name string) hclog.Logger {
	return &hcLog{to: h.to, name: name, args: h.args}
}

// SetLevel does nothing: the slog handler decides.
func (h *hcLog) SetLevel(hclog.Level) {}

// GetLevel returns the lowest level that is written.
func (h *hcLog) GetLevel() hclog.Level {
	for _, l := range []hclog.Level{hclog.Debug, hclog.Info, hclog.Warn} {
		if h.isEnabled(slogLevel(l)) {
			return l
		}
	}
	return hclog.Error
}

// StandardLogger returns a logger of package log that writes at info level.
func (h *hcLog) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(h.to.Handler(), slog.LevelInfo)
}

// StandardWriter returns the writer of StandardLogger.
func (h *hcLog) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return h.StandardLogger(o).Writer()
}
