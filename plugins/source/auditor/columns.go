package main

import (
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// recordAttributes are the columns of a record.
func recordAttributes() []sdk.Attribute {
	return []sdk.Attribute{
		{Name: "id", Type: sdk.TypeString, Doc: "the record's id, as it is there"},
		{Name: "start", Type: sdk.TypeTime, Doc: "when the run began"},
		{Name: "stop", Type: sdk.TypeTime, Doc: "when it ended; null while it runs"},
		{Name: "runtime", Type: sdk.TypeInt, Doc: "whole seconds from start to stop; null while it runs"},
		{Name: "meta", Type: sdk.TypeMap, Doc: "the meta: a list of texts for each key, for example job.meta.group_id[0]"},
		{Name: "components", Type: sdk.TypeString, Doc: "the components as JSON: a list of objects with name, amount, kind (rate or total) and scores"},
		{Name: "submit", Type: sdk.TypeTime, Doc: "when the job was submitted; another bursar alone knows it"},
		{Name: "state", Type: sdk.TypeString, Doc: "state in which it ended; another bursar alone knows it"},
		{Name: "exit_code", Type: sdk.TypeInt, Doc: "exit code; another bursar alone knows it"},
		{Name: "exit_signal", Type: sdk.TypeInt, Doc: "signal that ended it, 0 for none; another bursar alone knows it"},
	}
}

// defaultMapping keeps a record as it is.
const defaultMapping = `
id          = job.id
start       = job.start
stop        = job.stop
submit      = job.submit
state       = job.state
exit_code   = job.exit_code
exit_signal = job.exit_signal
meta        = job.meta
components  = job.components
`

// jobOf is a record as the daemon gets it.
func (s *source) jobOf(r *record.Record) sdk.Job {
	runtime, code, signal := sdk.Null(), sdk.Null(), sdk.Null()
	if n, ended := r.Runtime(); ended {
		runtime = sdk.Int(n)
	}
	if r.Exit.Known {
		code, signal = sdk.Int(int64(r.Exit.Code)), sdk.Int(int64(r.Exit.Signal))
	}
	var meta, components sdk.Value
	if s.wanted["meta"] {
		keys := make(map[string]sdk.Value, len(r.Meta))
		for _, e := range r.Meta {
			keys[e.Key] = sdk.Strings(e.Values...)
		}
		meta = sdk.Map(keys)
	}
	if s.wanted["components"] {
		components = sdk.String(string(wire.AppendComponentsJSON(nil, r.Components)))
	}
	return sdk.Job{Run: r.ID, Ended: !r.Open(), Excluded: s.isExcluded(r), Values: []sdk.Value{
		sdk.String(r.ID), timeOrNull(r.Start), timeOrNull(r.Stop), runtime, meta, components, timeOrNull(r.Submit), textOrNull(r.State), code, signal,
	}}
}

func timeOrNull(t record.Time) sdk.Value {
	if t == record.None {
		return sdk.Null()
	}
	return sdk.Time(t.Std())
}

// textOrNull is null where there is none.
func textOrNull(s string) sdk.Value {
	if s == "" {
		return sdk.Null()
	}
	return sdk.String(s)
}
