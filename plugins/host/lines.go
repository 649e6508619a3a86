package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxLine     = 16 << 10 // bytes of a line that are kept
	maxLines    = 100      // lines that are logged in a second
	maxReadRate = 8 << 20  // bytes of output that are read in a second
	maxFields   = 32       // fields of a log entry
	maxField    = 4 << 10  // bytes of a field
	keptLines   = 10       // last lines that an error shows
	dumpLines   = 5000     // lines of the goroutines of a plugin that hangs
	streamOut   = "stdout"
	streamErr   = "stderr"
)

// lines turns a plugin's output into log entries: bounded in length and in rate,
// with everything unprintable escaped. What is over the rate is dropped and
// counted; a plugin that writes even more waits.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex
	second  time.Time // the second that the counters are of
	logged  int
	dropped int
	read    int
	last    []string // of stderr
	spare   int      // lines of a dump that are still logged at once
}

// copyLines logs what r gives until its end.
func (l *lines) copyLines(r *bufio.Reader, stream string) {
	for {
		line, n, err := boundedLine(r)
		if n > 0 {
			l.paceReading(n)
			l.logLine(line, stream)
		}
		if err != nil {
			return
		}
	}
}

// boundedLine reads a line and keeps its head; n is its whole length. A line
// that is longer than the buffer many times over comes in several pieces.
func boundedLine(r *bufio.Reader) (line string, n int, err error) {
	var kept []byte
	for n < maxReadRate {
		piece, err := r.ReadSlice('\n')
		n += len(piece)
		kept = append(kept, piece[:min(len(piece), maxLine-len(kept))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimRight(string(kept), "\r\n"), n, err
		}
	}
	return string(kept), n, nil
}

// paceReading waits when more is written than should be read.
func (l *lines) paceReading(n int) {
	l.mu.Lock()
	l.beginSecond(time.Now())
	l.read += n
	wait := time.Duration(0)
	if l.read > maxReadRate {
		wait = time.Until(l.second.Add(time.Second))
	}
	l.mu.Unlock()
	time.Sleep(wait)
}

// beginSecond begins a new second. The caller holds mu.
func (l *lines) beginSecond(now time.Time) {
	if now.Sub(l.second) < time.Second {
		return
	}
	l.reportDropped()
	l.second, l.logged, l.read = now, 0, 0
}

func (l *lines) reportDropped() {
	if l.dropped > 0 {
		l.log.Warn("plugin writes too much, lines dropped", "dropped", l.dropped, "allowed_per_second", maxLines)
		l.dropped = 0
	}
}

// flushReport reports what was dropped and not yet reported.
func (l *lines) flushReport() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reportDropped()
}

func (l *lines) logLine(line, stream string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginSecond(time.Now())
	if stream == streamErr {
		l.storeLine(line)
	}
	dumped := l.spare > 0 && stream == streamErr
	if dumped {
		l.spare--
	} else if l.logged++; l.logged > maxLines {
		l.dropped++
		return
	}
	level, message, fields := parseLine(line, stream)
	if dumped {
		level = max(level, slog.LevelWarn)
	}
	l.log.LogAttrs(context.Background(), level, message, fields...)
}

// dumpNext has the next lines of standard error logged whatever their rate, as warnings.
func (l *lines) dumpNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = dumpLines
}

func (l *lines) storeLine(line string) {
	l.last = append(l.last, escapeText(line[:min(len(line), 400)]))
	if len(l.last) > keptLines {
		l.last = l.last[1:]
	}
}

// lastLines returns the last lines of standard error, for an error message.
func (l *lines) lastLines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}

// writerFor returns a writer that logs what is written to it, for the output that
// comes over gRPC.
func (l *lines) writerFor(stream string) *lineWriter {
	r, w := io.Pipe()
	out := &lineWriter{PipeWriter: w, ended: make(chan struct{})}
	go func() {
		defer close(out.ended)
		l.copyLines(bufio.NewReaderSize(r, readBuffer), stream)
	}()
	return out
}

type lineWriter struct {
	*io.PipeWriter
	ended chan struct{}
}

func (w *lineWriter) stopWriting() {
	_ = w.Close()
	<-w.ended
}

// parseLine reads a line as plugins write log entries: JSON with @level and
// @message. Anything else is the message itself.
func parseLine(line, stream string) (slog.Level, string, []slog.Attr) {
	var entry map[string]any
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &entry) == nil {
		if message, ok := entry["@message"].(string); ok {
			level, _ := entry["@level"].(string)
			return parseLevel(level), escapeText(message), fieldsOf(entry)
		}
	}
	return rawLevel(line, stream), escapeText(line), []slog.Attr{slog.String("stream", stream)}
}

func parseLevel(s string) slog.Level {
	switch strings.ToLower(s) {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

func rawLevel(line, stream string) slog.Level {
	switch {
	case stream == streamOut:
		return slog.LevelDebug
	case strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: "):
		return slog.LevelError
	}
	return slog.LevelInfo
}

func fieldsOf(entry map[string]any) []slog.Attr {
	var out []slog.Attr
	for name, value := range entry {
		if !strings.HasPrefix(name, "@") {
			out = append(out, slog.String("plugin."+escapeText(clipText(name)), escapeText(fieldText(value))))
		}
	}
	slices.SortFunc(out, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	return out[:min(len(out), maxFields)]
}

func fieldText(v any) string {
	s, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		s = string(b)
	}
	return s[:min(len(s), maxField)]
}

// escapeText writes what is not printable as an escape sequence, so that a line
// cannot move the cursor of a terminal or look like another line.
func escapeText(s string) string {
	if !strings.ContainsFunc(s, isUnprintable) && utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if isUnprintable(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func isUnprintable(r rune) bool { return r == utf8.RuneError || r != ' ' && !unicode.IsPrint(r) }
