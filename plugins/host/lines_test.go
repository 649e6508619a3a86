package host

import (
	"bufio"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLogEntriesOfPluginsKeepLevelMessageAndFields(t *testing.T) {
	cases := []struct {
		line, stream string
		level        slog.Level
		message      string
		fields       string
	}{
		{`{"@level":"warn","@message":"slow","@timestamp":"2026-01-01T00:00:00Z","n":3,"who":"a\nb"}`, streamErr, slog.LevelWarn, "slow", `plugin.n=3 plugin.who=a\nb`},
		{`{"@message":1}`, streamErr, slog.LevelInfo, `{"@message":1}`, "stream=stderr"},
		{`{"@message":"x","@level":7}`, streamErr, slog.LevelInfo, "x", ""},
		{"panic: oh", streamErr, slog.LevelError, "panic: oh", "stream=stderr"},
		{"printed", streamOut, slog.LevelDebug, "printed", "stream=stdout"},
		{"a\x1b[2Jb\rc\xff", streamErr, slog.LevelInfo, `a\x1b[2Jb\rc\ufffd`, "stream=stderr"},
	}
	for _, c := range cases {
		level, message, attrs := parseLine(c.line, c.stream)
		var texts []string
		for _, a := range attrs {
			texts = append(texts, a.String())
		}
		if got := strings.Join(texts, " "); level != c.level || message != c.message || got != c.fields {
			t.Errorf("%q: %v %q %q", c.line, level, message, got)
		}
	}
}

func TestLongLineIsCutAndTheNextOneIsRead(t *testing.T) {
	text := strings.Repeat("x", 10*maxLine) + "\nshort\nlast"
	r := bufio.NewReaderSize(strings.NewReader(text), readBuffer)
	var lengths []int
	for {
		line, n, err := boundedLine(r)
		if n > 0 {
			lengths = append(lengths, len(line))
		}
		if err != nil {
			break
		}
	}
	if len(lengths) != 3 || lengths[0] != maxLine || lengths[1] != 5 || lengths[2] != 4 {
		t.Errorf("lengths: %v", lengths)
	}
}

func FuzzLine(f *testing.F) {
	f.Add(`{"@level":"warn","@message":"slow","n":3}`)
	f.Add("\x1b[31m\xff")
	f.Fuzz(func(t *testing.T, line string) {
		_, message, attrs := parseLine(line, streamErr)
		if strings.ContainsFunc(message, func(r rune) bool { return r < ' ' }) || !utf8.ValidString(message) {
			t.Errorf("message %q", message)
		}
		if len(attrs) > maxFields {
			t.Errorf("%d fields", len(attrs))
		}
	})
}

func FuzzHandshakeLine(f *testing.F) {
	f.Add("1|1|unix|/tmp/x|grpc|")
	f.Add("1|1|tcp|127.0.0.1:1|grpc|AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		line, err := firstLine(bufio.NewReader(strings.NewReader(text)))
		if len(line) > maxHandshake {
			t.Errorf("%d bytes", len(line))
		}
		if err == nil && handshakeLine.MatchString(line) && strings.Count(line, "|") < 4 {
			t.Errorf("accepted %q", line)
		}
	})
}
