package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// The places of the columns that the code itself looks at.
const (
	colID = iota
	colStart
	colStop
	_ // submit
	_ // state
	colExitCode
	colExitSignal
)

// jobAttributes are the columns of a job: the keys of a line, and the whole line.
func jobAttributes() []sdk.Attribute {
	return []sdk.Attribute{
		{Name: "id", Type: sdk.TypeString, Doc: "names the run; required"},
		{Name: "start", Type: sdk.TypeTime, Doc: "when the run began; required"},
		{Name: "stop", Type: sdk.TypeTime, Doc: "when it ended; null while it runs"},
		{Name: "submit", Type: sdk.TypeTime, Doc: "when the job was submitted"},
		{Name: "state", Type: sdk.TypeString, Doc: "how it ended, in the scheduler's word"},
		{Name: "exit_code", Type: sdk.TypeInt, Doc: "exit code"},
		{Name: "exit_signal", Type: sdk.TypeInt, Doc: "signal that ended it"},
		{Name: "name", Type: sdk.TypeString, Doc: "name of the job"},
		{Name: "user", Type: sdk.TypeString, Doc: "who ran it"},
		{Name: "group", Type: sdk.TypeString, Doc: "the user's group"},
		{Name: "account", Type: sdk.TypeString, Doc: "who pays"},
		{Name: "partition", Type: sdk.TypeString, Doc: "partition or queue"},
		{Name: "site", Type: sdk.TypeString, Doc: "the site"},
		{Name: "nodes", Type: sdk.TypeInt, Doc: "number of nodes"},
		{Name: "cpus", Type: sdk.TypeInt, Doc: "allocated cores"},
		{Name: "memory_mb", Type: sdk.TypeInt, Doc: "allocated memory, MiB"},
		{Name: "gpus", Type: sdk.TypeInt, Doc: "allocated GPUs"},
		{Name: "cpu_seconds", Type: sdk.TypeInt, Doc: "CPU time used, seconds"},
		{Name: "hepscore", Type: sdk.TypeFloat, Doc: "HEPScore23 of a core"},
		{Name: "fields", Type: sdk.TypeMap, Doc: "all keys of the line, nested as they are; null for the recorded cluster"},
	}
}

// mapping is the default mapping.
const mapping = `
id          = "${source.label}-${job.id}"
start       = job.start
stop        = job.stop
submit      = job.submit
state       = job.state
exit_code   = job.exit_code
exit_signal = job.exit_signal
meta = {
  site_id   = job.site
  user_id   = job.user
  group_id  = job.group
  account   = job.account
  partition = job.partition
}
component "Cores" {
  amount = job.cpus
  when   = job.cpus != null
  score "HEPScore23" {
    value = job.hepscore
    when  = job.hepscore != null
  }
}
component "Memory" {
  amount = job.memory_mb
  when   = job.memory_mb != null
}
component "TotalCPU" {
  amount = job.cpu_seconds
  kind   = "total"
  when   = job.cpu_seconds != null
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
`

// maxDepth of a line's nesting.
const maxDepth = 32

// parseJob reads one line as a job. What cannot be read of it is unread, but for its id, start
// and stop. With an error the job has its run, as far as the line tells it. Keys that neither
// columns nor the mapping read are findings.
func parseJob(line []byte, columns []sdk.Attribute, keys []string, fields bool) (sdk.Job, error) {
	object, err := decodeLine(line)
	if err != nil {
		return sdk.Job{}, err
	}
	job := sdk.Job{Values: make([]sdk.Value, len(columns))}
	odd := func(c *sdk.Attribute, err error) {
		job.Unread = append(job.Unread, sdk.Unread{Attribute: c.Name, Problem: err.Error()})
	}
	for i := range columns[:len(columns)-1] {
		c := &columns[i]
		v, err := convertValue(object[c.Name], c.Type)
		if i >= colExitCode && i <= colExitSignal && err == nil && v.Int() != int64(int32(v.Int())) {
			v, err = sdk.Null(), fmt.Errorf("%d is not a number of 32 bits", v.Int())
		}
		if err != nil && i <= colStop {
			return job, fmt.Errorf("%s: %w", c.Name, err)
		}
		if err != nil {
			odd(c, err)
		}
		job.Values[i] = v
		if i == colID {
			job.Run = v.Str()
		}
	}
	if last := len(columns) - 1; fields {
		if job.Values[last], err = jsonValue(object, maxDepth); err != nil {
			odd(&columns[last], err)
		}
	}
	job.Findings = unreadKeys(object, columns, keys)
	return finishJob(job)
}

// unreadKeys names the keys of a line that no one reads. Columns that the mapping leaves out
// are left out on purpose; a key without a column is often a column that is written
// otherwise, such as cores.
func unreadKeys(object map[string]any, columns []sdk.Attribute, keys []string) (out []sdk.Finding) {
	if slices.Contains(keys, "fields.*") {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if object[key] == nil || slices.Contains(keys, "fields."+key) ||
			slices.ContainsFunc(columns[:len(columns)-1], func(c sdk.Attribute) bool { return c.Name == key }) {
			continue
		}
		out = append(out, sdk.Finding{
			Kind: "column-unread", About: key, What: fmt.Sprintf("key %q of the file is not read by the mapping", key),
			Do: fmt.Sprintf("bursar-source-replay -h   # lists the keys that have a column; rename the key, or read it in the record block as job.fields[%q]", key),
		})
	}
	return out
}

func finishJob(job sdk.Job) (sdk.Job, error) {
	switch {
	case job.Run == "":
		return job, errors.New("id: missing")
	case job.Values[colStart].IsNull():
		return job, errors.New("start: missing")
	}
	job.Ended = !job.Values[colStop].IsNull()
	return job, nil
}

func decodeLine(line []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON object in a line")
	}
	if object == nil {
		return nil, errors.New("null is not a JSON object")
	}
	return object, nil
}

func convertValue(v any, want sdk.Type) (sdk.Value, error) {
	if v == nil {
		return sdk.Null(), nil
	}
	n, number := v.(json.Number)
	s, text := v.(string)
	switch {
	case want == sdk.TypeString && text:
		return sdk.String(s), nil
	case want == sdk.TypeString && number:
		return sdk.String(n.String()), nil
	case want == sdk.TypeInt && number:
		return integerValue(n)
	case want == sdk.TypeFloat && number:
		f, err := n.Float64()
		if err != nil {
			return sdk.Null(), fmt.Errorf("%s is not a number that fits", n)
		}
		return sdk.Float(f), nil
	case want == sdk.TypeTime && (text || number):
		return instantValue(s, n)
	}
	return sdk.Null(), fmt.Errorf("%.80q is not a %s", fmt.Sprint(v), want)
}

func integerValue(n json.Number) (sdk.Value, error) {
	if i, err := n.Int64(); err == nil {
		return sdk.Int(i), nil
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return sdk.Null(), fmt.Errorf("%s is not a whole number that fits", n)
	}
	return sdk.Int(int64(f)), nil
}

// instantValue reads RFC 3339 text, or seconds since 1970.
func instantValue(s string, n json.Number) (sdk.Value, error) {
	if n == "" {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return sdk.Null(), fmt.Errorf("%q is neither a time like 2026-01-02T03:04:05Z nor seconds since 1970", s)
		}
		return sdk.Time(t), nil
	}
	seconds, err := n.Float64()
	if err != nil || math.Abs(seconds) > 1e11 {
		return sdk.Null(), fmt.Errorf("%s is not a number of seconds since 1970", n)
	}
	if whole, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return sdk.Time(time.Unix(whole, 0)), nil
	}
	return sdk.Time(time.UnixMicro(int64(math.Round(seconds * 1e6)))), nil
}

// jsonValue is a value of JSON as it is.
func jsonValue(v any, depth int) (sdk.Value, error) {
	if depth == 0 {
		return sdk.Null(), fmt.Errorf("nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case string:
		return sdk.String(v), nil
	case bool:
		return sdk.Bool(v), nil
	case json.Number:
		return numberValue(v), nil
	case []any:
		return listValue(v, depth)
	case map[string]any:
		return objectValue(v, depth)
	}
	return sdk.Null(), nil
}

func numberValue(n json.Number) sdk.Value {
	if i, err := n.Int64(); err == nil {
		return sdk.Int(i)
	}
	f, err := n.Float64()
	if err != nil {
		return sdk.String(n.String())
	}
	return sdk.Float(f)
}

func listValue(vs []any, depth int) (sdk.Value, error) {
	out := make([]sdk.Value, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = jsonValue(v, depth-1); err != nil {
			return sdk.Null(), err
		}
	}
	return sdk.List(out...), nil
}

func objectValue(m map[string]any, depth int) (sdk.Value, error) {
	out := make(map[string]sdk.Value, len(m))
	for k, v := range m {
		var err error
		if out[k], err = jsonValue(v, depth-1); err != nil {
			return sdk.Null(), err
		}
	}
	return sdk.Map(out), nil
}
