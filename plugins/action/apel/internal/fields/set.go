package fields

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Benchmark is one with which durations are normalised.
type Benchmark struct {
	Name  string // as message.Benchmark writes it
	Score Source // what a core scores; absent: that of Cores with the benchmark's name
	// Wall and CPU are what is normalised already; absent: the duration times the
	// score.
	Wall, CPU Source
}

// Config says where all fields come from.
type Config struct {
	Fields     map[string]Source // by the name of the field
	Benchmarks []Benchmark
}

// Set makes jobs of records. Compile makes it. It is for one goroutine at a time.
type Set struct {
	fields     []field
	benchmarks []benchmark
}

// field is a field of a job: a text or a number.
type field struct {
	name     string
	need     bool
	fallback string // the expression where the configuration has none
	text     func(*message.Job) *string
	number   func(*message.Job) *int64
	expr     *expression
}

type benchmark struct {
	name             string
	fromCores        bool // the score is that of Cores with the benchmark's name in any case
	score, wall, cpu *expression
}

// settableFields are the fields that a configuration can set. Infrastructure is called
// InfrastructureType in messages of individual jobs.
func settableFields() []field {
	return []field{
		{name: "VO", need: true, text: func(j *message.Job) *string { return &j.VO }},
		{name: "SubmitHost", need: true, text: func(j *message.Job) *string { return &j.SubmitHost }},
		{name: "Processors", need: true, fallback: "record.components.Cores.amount", number: func(j *message.Job) *int64 { return &j.Processors }},
		{name: "WallDuration", need: true, fallback: "record.runtime", number: func(j *message.Job) *int64 { return &j.WallDuration }},
		{name: "CpuDuration", need: true, fallback: "record.components.TotalCPU.amount", number: func(j *message.Job) *int64 { return &j.CPUDuration }},
		{name: "GlobalUserName", text: func(j *message.Job) *string { return &j.GlobalUserName }},
		{name: "VOGroup", text: func(j *message.Job) *string { return &j.VOGroup }},
		{name: "VORole", text: func(j *message.Job) *string { return &j.VORole }},
		{name: "Infrastructure", text: func(j *message.Job) *string { return &j.InfrastructureType }},
		{name: "InfrastructureDescription", text: func(j *message.Job) *string { return &j.InfrastructureDescription }},
		{name: "NodeCount", fallback: "1", number: func(j *message.Job) *int64 { return &j.NodeCount }},

		{name: "LocalJobId", fallback: "record.id", text: func(j *message.Job) *string { return &j.LocalJobID }},
		{name: "LocalUserId", text: func(j *message.Job) *string { return &j.LocalUserID }},
		{name: "MachineName", text: func(j *message.Job) *string { return &j.MachineName }},
		{name: "Queue", text: func(j *message.Job) *string { return &j.Queue }},
		{name: "FQAN", text: func(j *message.Job) *string { return &j.FQAN }},
		{name: "MemoryReal", number: func(j *message.Job) *int64 { return &j.MemoryReal }},
		{name: "MemoryVirtual", number: func(j *message.Job) *int64 { return &j.MemoryVirtual }},
	}
}

// Names are the fields that a configuration can set.
func Names() []string {
	var out []string
	for _, f := range settableFields() {
		out = append(out, f.name)
	}
	return out
}

// Compile checks all expressions and reports every problem. The Set is nil when one
// is an error.
func Compile(c Config) (*Set, hcl.Diagnostics) {
	k, s := newCompiler(), &Set{}
	for _, f := range settableFields() {
		source := c.Fields[f.name]
		if source.isAbsent() && f.fallback == "" {
			continue
		}
		if source.isAbsent() {
			source = Source{Text: f.fallback, At: hcl.Range{Filename: "default of " + f.name, Start: startPosition(), End: startPosition()}}
		}
		want := cty.Number
		if f.text != nil {
			want = cty.String
		}
		f.expr = k.compileSource(source, want)
		s.fields = append(s.fields, f)
	}
	for _, b := range c.Benchmarks {
		s.benchmarks = append(s.benchmarks, k.compileBenchmark(b))
	}
	if k.diags.HasErrors() {
		return nil, k.diags
	}
	return s, k.diags
}

func startPosition() (p hcl.Pos) {
	p.Line, p.Column = 1, 1
	return p
}

func (c *compiler) compileBenchmark(b Benchmark) benchmark {
	out := benchmark{name: b.Name}
	out.fromCores = b.Score.isAbsent() && (b.Wall.isAbsent() || b.CPU.isAbsent())
	for _, p := range []struct {
		source Source
		expr   **expression
	}{{b.Score, &out.score}, {b.Wall, &out.wall}, {b.CPU, &out.cpu}} {
		if !p.source.isAbsent() {
			*p.expr = c.compileSource(p.source, cty.Number)
		}
	}
	return out
}

// Job makes the job of a record of a site. The error says which mandatory fields are
// missing, and why.
func (s *Set) Job(site string, r *record.Record) (*month.Job, error) {
	j := &month.Job{Part: r.Meta.IsPart()}
	j.Site, j.StartTime, j.EndTime = site, unixSeconds(r.Start), unixSeconds(r.Stop)
	var errs []error
	for i := range s.fields {
		f := &s.fields[i]
		if err := f.setField(&j.Job, site, r); err != nil && f.need {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	for i := range s.benchmarks {
		if err := s.benchmarks[i].setAmounts(j, site, r); err != nil {
			errs = append(errs, err)
		}
	}
	return j, errors.Join(errs...)
}

// unixSeconds are the seconds since 1970, a begun one left out.
func unixSeconds(t record.Time) int64 { return t.Std().Unix() }

func (f *field) setField(j *message.Job, site string, r *record.Record) error {
	v, err := f.expr.valueFor(site, r)
	if err != nil {
		return err
	}
	if f.text != nil {
		*f.text(j), err = textOf(v)
	} else {
		*f.number(j), err = roundedOf(v)
	}
	return err
}

func (b *benchmark) setAmounts(j *month.Job, site string, r *record.Record) error {
	wall, cpu, err := b.evaluateAmounts(j, site, r)
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	j.NormalisedWall = append(j.NormalisedWall, message.Amount{Benchmark: b.name, Value: wall})
	j.NormalisedCPU = append(j.NormalisedCPU, message.Amount{Benchmark: b.name, Value: cpu})
	return nil
}

func (b *benchmark) evaluateAmounts(j *month.Job, site string, r *record.Record) (wall, cpu int64, err error) {
	score, known, err := b.scoreOf(site, r)
	if err != nil {
		return 0, 0, fmt.Errorf("score: %w", err)
	}
	if known {
		j.ServiceLevels = append(j.ServiceLevels, message.Level{Benchmark: b.name, Value: score})
	}
	one := func(e *expression, duration int64) int64 {
		if e == nil {
			n, failed := month.Normalise(duration, score)
			err = errors.Join(err, failed)
			return n
		}
		v, failed := e.valueFor(site, r)
		if failed == nil {
			duration, failed = roundedOf(v)
		}
		err = errors.Join(err, failed)
		return duration
	}
	return one(b.wall, j.WallDuration), one(b.cpu, j.CPUDuration), err
}

// scoreOf is what a core scores; not known where all is normalised already.
func (b *benchmark) scoreOf(site string, r *record.Record) (score float64, known bool, err error) {
	switch {
	case b.fromCores:
		score, err = coreScore(b.name, r)
	case b.score == nil:
		return 0, false, nil
	default:
		var v cty.Value
		if v, err = b.score.valueFor(site, r); err == nil {
			score, err = numberOf(v)
		}
	}
	return score, err == nil, err
}

func coreScore(name string, r *record.Record) (float64, error) {
	if c := r.Component("Cores"); c != nil {
		for _, s := range c.Scores {
			if strings.EqualFold(s.Name, name) {
				return s.Value, nil
			}
		}
	}
	return 0, fmt.Errorf("component Cores has no score %s", name)
}

var errNull = errors.New("it is null")

func textOf(v cty.Value) (string, error) {
	v, err := convert.Convert(v, cty.String)
	if err != nil {
		return "", err
	}
	if v.IsNull() {
		return "", errNull
	}
	if s := v.AsString(); s != "" {
		return s, nil
	}
	return "", errors.New("it is empty")
}

func numberOf(v cty.Value) (float64, error) {
	v, err := convert.Convert(v, cty.Number)
	if err != nil {
		return 0, err
	}
	if v.IsNull() {
		return 0, errNull
	}
	f, _ := v.AsBigFloat().Float64()
	return f, nil
}

// roundedOf reads a number, rounded half to even.
func roundedOf(v cty.Value) (int64, error) {
	v, err := convert.Convert(v, cty.Number)
	if err != nil {
		return 0, err
	}
	if v.IsNull() {
		return 0, errNull
	}
	if n, accuracy := v.AsBigFloat().Int64(); accuracy == 0 {
		return n, nil
	}
	f, _ := v.AsBigFloat().Float64()
	if f = math.RoundToEven(f); f >= math.MaxInt64 || f <= math.MinInt64 {
		return 0, fmt.Errorf("%v is too large", f)
	}
	return int64(f), nil
}

// Known reports whether a configuration can set a field.
func Known(name string) bool { return slices.Contains(Names(), name) }
