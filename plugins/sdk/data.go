package sdk

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Data is what a Plan reads: the daemon's REST interface, with the rights of the
// action. It belongs to one goroutine. Nothing can be asked while an answer is
// open, so an answer is read to its end or closed before the next question.
type Data struct{ requester *requester }

// ErrOpen says that a question was asked while an answer was open.
var ErrOpen = errors.New("an answer is still open; read it to its end or close it before the next question")

// ResponseError is a refusal of the REST interface.
type ResponseError struct {
	Method string // "" is GET
	Target string
	Status int    // of HTTP
	Detail string // what it says
}

// Error implements error.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", cmp.Or(e.Method, "GET"), cutText(e.Target), e.Status, e.Detail)
}

// maxRefusal is how much of a refusal is read.
const maxRefusal = 64 << 10

// Get reads a path with its query, for example /v1/prices, as accept says; "": as
// the daemon likes. The body comes as it is read, whatever its size. A status
// other than 200 is a *ResponseError; an answer that was broken off is an error of
// Read, never a short body.
func (d *Data) Get(ctx context.Context, target, accept string) (io.ReadCloser, error) {
	a, err := d.requester.getAnswer(ctx, target, accept)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", cutText(target), err)
	}
	if a.status == 200 {
		return a, nil
	}
	defer func() { _ = a.Close() }() // an error of it has no meaning any more
	text, err := io.ReadAll(io.LimitReader(a, maxRefusal))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", cutText(target), err)
	}
	return nil, &ResponseError{Target: target, Status: a.status, Detail: detailOf(text)}
}

// detailOf is the text of a problem document, or the body as it is.
func detailOf(body []byte) string {
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return cutText(string(bytes.TrimSpace(body)))
}

// UsageRow is a cell of an answer about usage: a group in a bucket of time.
type UsageRow struct {
	// Group are the group's values by the keys of by; a key without a value is not
	// there.
	Group map[string]string
	// Others is how many groups the row stands for, where only the top ones have
	// rows of their own; 0: it is one group.
	Others int
	// Bucket is its name, such as 2026-03; "" where there is only one.
	Bucket   string
	From, To time.Time
	// Measures are the figures, exact as far as they are; what has none is not
	// there.
	Measures map[string]json.Number
}

// API asks /v1 with typed questions and answers. A plan only asks: what is no GET is an
// error.
func (d *Data) API() v1.API { return v1.API{Caller: asking{d}} }

// asking is the Data as a caller of /v1.
type asking struct{ data *Data }

// Call implements v1.Caller.
func (a asking) Call(ctx context.Context, method, path string, query url.Values, _, out any) error {
	if method != "GET" {
		return fmt.Errorf("%s %s: a plan only reads", method, path)
	}
	body, err := a.data.Get(ctx, targetOf(path, query), "application/json")
	if err != nil {
		return err
	}
	err = json.NewDecoder(body).Decode(out)
	if err = errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("GET %s: %w", cutText(path), err)
	}
	return nil
}

// Stream implements v1.Caller.
func (a asking) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for line, err := range a.data.Lines(ctx, targetOf(path, query)) {
			if !yield(line, err) {
				return
			}
		}
	}
}

func targetOf(path string, query url.Values) string {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// Usage asks /v1/usage and gives the rows one by one, those without figures left
// out.
func (d *Data) Usage(ctx context.Context, query *v1.UsageQuery) iter.Seq2[UsageRow, error] {
	return func(yield func(UsageRow, error) bool) {
		first := true
		for line, err := range d.API().UsageLines(ctx, query) {
			if err == nil && first { // it tells about the answer
				first = false
				continue
			}
			if err != nil {
				yield(UsageRow{}, fmt.Errorf("usage: %w", err))
				return
			}
			if !yield(usageRow(&line), nil) {
				return
			}
		}
	}
}

func usageRow(l *v1.UsageLine) UsageRow {
	row := UsageRow{
		Others: l.Others, Bucket: string(l.Bucket), From: l.From.Time, To: l.To.Time, Group: map[string]string{}, Measures: map[string]json.Number{},
	}
	for key, value := range l.Group {
		if value != nil {
			row.Group[key] = *value
		}
	}
	for name, value := range l.Measures {
		if value != nil {
			row.Measures[name] = *value
		}
	}
	return row
}

// Records asks /v1/records and gives the records one by one, all of them.
func (d *Data) Records(ctx context.Context, query *v1.ListRecordsQuery) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		for line, err := range d.Lines(ctx, v1.ListRecordsAddress(query, "")) {
			var r record.Record
			if err == nil {
				r, err = wire.DecodeRecordJSON(line)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// maxLine is the longest line of an answer.
const maxLine = 4 << 20

// Lines asks a path with its query that answers in JSON lines, such as /v1/records, and
// gives them one by one. A line belongs to the caller.
func (d *Data) Lines(ctx context.Context, target string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		body, err := d.Get(ctx, target, "application/x-ndjson")
		if err != nil {
			yield(nil, err)
			return
		}
		defer body.Close()
		in := bufio.NewScanner(body)
		in.Buffer(make([]byte, 64<<10), maxLine)
		for in.Scan() {
			if len(in.Bytes()) > 0 && !yield(bytes.Clone(in.Bytes()), nil) {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(nil, fmt.Errorf("GET %s: %w", cutText(target), err))
		}
	}
}

// World is what an Execute may do beside what its process can do itself: run
// programs where the action runs, on the leader or on the agent that run_on names, read
// what a Plan can read, and archive records.
type World struct{ requester *requester }

// Data reads the daemon's REST interface as that of a Plan does. What an effect does still
// depends on nothing but its payload, and on records that the payload names.
func (w *World) Data() *Data { return &Data{w.requester} }

// Program is what to run.
type Program struct {
	// Arguments are the program's path, absolute, and its arguments. There is no
	// shell.
	Arguments []string
	// Environment is set beside PATH, HOME, LANG, LC_ALL and TZ.
	Environment map[string]string
	Input       []byte        // of standard input
	Timeout     time.Duration // zero: the deadline of the effect
}

// Output is what a program has written, at most a MiB each, and how it ended.
type Output struct {
	Status        int // 0 is well; more than 128 for a signal
	Stdout, Error []byte
}

// Run runs a program to its end. An error of which [NotRun] says so left nothing
// behind; after any other the program may have done what it does. That it ended
// with another status than 0 is no error.
func (w *World) Run(ctx context.Context, p Program) (Output, error) {
	a, err := w.requester.runProgram(ctx, p)
	if err != nil {
		return Output{}, fmt.Errorf("run %s: %w", p.programName(), err)
	}
	defer func() { _ = a.Close() }()
	out, err := io.ReadAll(a)
	if err != nil {
		return Output{}, fmt.Errorf("run %s: %w", p.programName(), err)
	}
	return Output{Status: a.status, Stdout: out, Error: a.errors}, nil
}

func (p *Program) programName() string {
	if len(p.Arguments) == 0 {
		return "nothing"
	}
	return cutText(p.Arguments[0])
}

// notRun is an error of a program that was not started.
type notRun struct{ error }

// NotRun reports whether an error of [World.Run] says that the program was not
// started.
func NotRun(err error) bool {
	_, ok := errors.AsType[notRun](err)
	return ok
}

// NotStarted makes an error of which [NotRun] says that the program was not
// started.
func NotStarted(err error) error { return notRun{err} }
