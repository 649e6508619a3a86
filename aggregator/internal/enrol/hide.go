package enrol

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
)

// secretPattern matches what a text has of the secrets of tokens and sessions, and of tokens by which
// machines join. What is before a secret names it.
func secretPattern() *regexp.Regexp {
	return regexp.MustCompile(`(b[ts]1_[0-9a-f]{16}_)[0-9A-Za-z_-]+|\b(b1_)[0-9A-Za-z_-]{12,}|(b1_)[0-9A-Za-z_-]{38,}`)
}

// Hide takes the secrets of tokens and sessions out of a text.
func Hide(text string) string {
	if !strings.Contains(text, "1_") { // as nearly all
		return text
	}
	return secretPattern().ReplaceAllString(text, "$1$2$3***")
}

// HideInLog returns a handler that hands on to next what it gets, without the secrets of
// tokens and sessions.
func HideInLog(next slog.Handler) slog.Handler { return hiding{next} }

type hiding struct{ slog.Handler }

// Handle implements slog.Handler.
func (h hiding) Handle(ctx context.Context, r slog.Record) error {
	hidden := slog.NewRecord(r.Time, r.Level, Hide(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool { hidden.AddAttrs(hideAttr(a)); return true })
	return h.Handler.Handle(ctx, hidden)
}

// WithAttrs implements slog.Handler.
func (h hiding) WithAttrs(attrs []slog.Attr) slog.Handler {
	hidden := make([]slog.Attr, len(attrs))
	for i := range attrs {
		hidden[i] = hideAttr(attrs[i])
	}
	return hiding{h.Handler.WithAttrs(hidden)}
}

// WithGroup implements slog.Handler.
func (h hiding) WithGroup(name string) slog.Handler { return hiding{h.Handler.WithGroup(name)} }

func hideAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Hide(v.String()))
	case slog.KindGroup:
		group := make([]slog.Attr, len(v.Group()))
		for i, one := range v.Group() {
			group[i] = hideAttr(one)
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		if text := v.String(); Hide(text) != text {
			a.Value = slog.StringValue(Hide(text))
		}
	}
	return a
}
