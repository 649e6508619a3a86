//go:build e2e

package faults

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Register is what the REST interface holds under one record id, as a client sees
// it. The zero Register is that there is no record.
type Register struct {
	Start record.Time
	Stop  record.Time // record.None while it runs
}

// Verb is what a client asks for.
type Verb string

// The verbs of the REST interface.
const (
	Add    Verb = "add"    // POST /record: there is none yet
	Update Verb = "update" // PUT /record: a new stop
	Get    Verb = "get"    // GET /record/{id}
)

// Request is an operation on a register.
type Request struct {
	ID    string
	Verb  Verb
	Value record.Time // the start of an Add, the stop of an Update
}

// Answer is what came of a request.
type Answer struct {
	Unknown bool     // of a write: it may have happened or not, or may do so later
	Done    bool     // an Add found none, an Update found one
	Seen    Register // by a Get
}

// Registers is the model of the REST interface: each record id is a register of
// its own.
func Registers() porcupine.Model {
	return porcupine.Model{
		Partition: byID,
		Init:      func() any { return Register{} },
		Step: func(state, input, output any) (bool, any) {
			return stepRegister(state.(Register), input.(Request), output.(Answer))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// stepRegister says whether a register may answer so, and what it is then.
func stepRegister(now Register, q Request, a Answer) (bool, Register) {
	there := now != Register{}
	next := now
	switch q.Verb {
	case Add:
		if !there {
			next = Register{Start: q.Value, Stop: record.None}
		}
		return a.Unknown || a.Done != there, next
	case Update:
		if there {
			next.Stop = q.Value
		}
		return a.Unknown || a.Done == there, next
	case Get:
	}
	return a.Seen == now, now
}

func byID(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	var order []string
	for _, op := range history {
		id := op.Input.(Request).ID
		if parts[id] == nil {
			order = append(order, id)
		}
		parts[id] = append(parts[id], op)
	}
	var list [][]porcupine.Operation
	for _, id := range order {
		list = append(list, parts[id])
	}
	return list
}

// History is what clients did and saw. It is safe for use by many goroutines.
type History struct {
	began time.Time

	mu   sync.Mutex
	ops  []porcupine.Operation
	odd  []error
	open map[string]bool // ids with a write of unknown outcome
}

// NewHistory is an empty one.
func NewHistory() *History { return &History{began: time.Now(), open: map[string]bool{}} }

// sinceBegin is the time that operations are compared by.
func (h *History) sinceBegin() int64 { return int64(time.Since(h.began)) }

// addOperation adds an operation that was called at a time and has returned now.
func (h *History) addOperation(client int, q Request, a Answer, call int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.sinceBegin()
	if a.Unknown {
		end = math.MaxInt64 // it may still happen
		h.open[q.ID] = true
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: q, Output: a, Call: call, Return: end})
}

// noteStrange notes an answer that no client may get.
func (h *History) noteStrange(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.odd = append(h.odd, err)
}

// Len is the number of operations.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ops)
}

// registerIDs are all registers that were asked for.
func (h *History) registerIDs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []string
	for _, op := range h.ops {
		ids = append(ids, op.Input.(Request).ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// checkTime is how long the check of a history may take. One that takes longer is
// a failure: no one knows.
const checkTime = time.Minute

// Check returns an error when the history is not linearizable, or that cannot be
// told. A picture of such a history is written to the file.
func (h *History) Check(picture string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.odd) > 0 {
		return fmt.Errorf("%d answers that no client may get, the first: %w", len(h.odd), h.odd[0])
	}
	verdict := porcupine.CheckOperationsTimeout(Registers(), h.ops, checkTime)
	if verdict == porcupine.Ok {
		return nil
	}
	_, info := porcupine.CheckOperationsVerbose(Registers(), h.ops, checkTime)
	if err := porcupine.VisualizePath(Registers(), info, picture); err != nil {
		return fmt.Errorf("a history of %d operations is %s; and %w", len(h.ops), verdict, err)
	}
	return fmt.Errorf("a history of %d operations is %s, not linearizable: see %s", len(h.ops), verdict, picture)
}
