package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Format is the version of the lines.
const Format = 1

// MaxLine is the greatest length of a line, its newline included.
const MaxLine = 16 << 10

// ErrFormat is the error of a line of another version.
var ErrFormat = errors.New("a format that is not known here")

// line is an event as it is written; the format stands first.
type line struct {
	Format int `json:"format"`
	Event
}

// Line writes e with a newline behind it.
func (e *Event) Line() ([]byte, error) { return encodeLine(line{Format, *e}) }

// Parse reads a line. What it does not know in it is left out; what does not fit is
// an error.
func Parse(text []byte) (Event, error) {
	var l line
	if err := decodeLine(text, &l.Format, &l); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	if err := l.Check(); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	return l.Event, nil
}

// Answer is what the plugin says to a line.
type Answer struct {
	ID    string // of the event
	Error string // why it was not taken; "": it is on disk
}

type answerLine struct {
	Format int    `json:"format"`
	ID     string `json:"id,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Line writes a with a newline behind it.
func (a Answer) Line() ([]byte, error) {
	if len(a.Error) > maxText {
		a.Error = a.Error[:maxText]
	}
	return encodeLine(answerLine{Format, a.ID, a.Error})
}

// ParseAnswer reads an answer.
func ParseAnswer(text []byte) (Answer, error) {
	var l answerLine
	if err := decodeLine(text, &l.Format, &l); err != nil {
		return Answer{}, fmt.Errorf("answer: %w", err)
	}
	return Answer{l.ID, l.Error}, nil
}

func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	if b.Len() > MaxLine {
		return nil, fmt.Errorf("a line of %d bytes; at most %d are allowed", b.Len(), MaxLine)
	}
	return b.Bytes(), nil
}

func decodeLine(text []byte, format *int, v any) error {
	if len(text) > MaxLine {
		return fmt.Errorf("a line of %d bytes; at most %d are allowed", len(text), MaxLine)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return err
	}
	if *format != Format {
		return fmt.Errorf("%w: %d instead of %d; upgrade the older one of bursar-epilog and its plugin", ErrFormat, *format, Format)
	}
	return nil
}
