//go:build e2e

package faults_test

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/bursar-accounting/bursar/e2e/faults"
	"github.com/bursar-accounting/bursar/proto/record"
)

// op is an operation on one register that lasts from call to end.
func op(client int, call, end int64, v faults.Verb, value record.Time, a faults.Answer) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Input: faults.Request{ID: "x", Verb: v, Value: value}, Output: a, Call: call, Return: end}
}

func saw(start, stop record.Time) faults.Answer {
	return faults.Answer{Seen: faults.Register{Start: start, Stop: stop}}
}

var (
	done    = faults.Answer{Done: true}
	unknown = faults.Answer{Unknown: true}
	nothing = faults.Answer{}
)

const later = math.MaxInt64

func TestChecker_Histories_TellsLinearizable(t *testing.T) {
	cases := []struct {
		name string
		ops  []porcupine.Operation
		want porcupine.CheckResult
	}{
		{"a write and a read after it", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, done), op(1, 2, 3, faults.Get, 0, saw(5, record.None))}, porcupine.Ok},
		{"a stale read of nothing", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, done), op(1, 2, 3, faults.Get, 0, nothing)}, porcupine.Illegal},
		{"a stale read of an old value", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, done), op(0, 2, 3, faults.Update, 6, done), op(0, 4, 5, faults.Update, 7, done),
			op(1, 6, 7, faults.Get, 0, saw(5, 6))}, porcupine.Illegal},
		{"a value that comes and goes", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, done), op(0, 2, 9, faults.Update, 6, done),
			op(1, 3, 4, faults.Get, 0, saw(5, 6)), op(1, 5, 6, faults.Get, 0, saw(5, record.None))}, porcupine.Illegal},
		{"an unknown write that happened", []porcupine.Operation{
			op(0, 0, later, faults.Add, 5, unknown), op(1, 2, 3, faults.Get, 0, nothing), op(1, 4, 5, faults.Get, 0, saw(5, record.None))}, porcupine.Ok},
		{"an unknown write that did not happen", []porcupine.Operation{
			op(0, 0, later, faults.Add, 5, unknown), op(1, 2, 3, faults.Get, 0, nothing)}, porcupine.Ok},
		{"a lost write", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, done), op(1, 2, 3, faults.Add, 6, done)}, porcupine.Illegal},
		{"a write twice", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, nothing)}, porcupine.Illegal},
		{"an update of nothing", []porcupine.Operation{
			op(0, 0, 1, faults.Update, 5, done)}, porcupine.Illegal},
		{"a value from nowhere", []porcupine.Operation{
			op(0, 0, 1, faults.Add, 5, done), op(1, 2, 3, faults.Get, 0, saw(6, record.None))}, porcupine.Illegal},
	}
	for _, c := range cases {
		if got := porcupine.CheckOperationsTimeout(faults.Registers(), c.ops, 0); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
