package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

func at(line int) Range { return Range{File: "agent.hcl", Start: Pos{line, 3, line * 10}} }

func attr(name string, v Value, line int) Node { return Node{Name: name, Value: v, Range: at(line)} }

func block(name string, line int, children ...Node) Node {
	return Node{Name: name, IsBlock: true, Range: at(line), Children: children}
}

func TestAllProblemsOfAConfigurationAreReportedAtTheirPlaces(t *testing.T) {
	cfg := NewConfig("nemo", block("config", 1,
		attr("port", String("many"), 2),
		attr("intervall", String("1m"), 3),
		attr("since", String("yesterday"), 4),
		Node{Name: "states", Value: List(String("a"), Map(nil)), Range: at(5), Elements: []Range{at(5), at(6)}},
		block("server", 7, attr("adress", String("x"), 8)),
		block("filter", 9),
		attr("tls", Bool(true), 10),
		attr("mode", String("fats"), 11),
		attr("pause", String("5"), 12),
	))
	cfg.Int("port", 1)
	cfg.Duration("interval", time.Minute)
	cfg.Time("since", time.Time{})
	cfg.Strings("states", nil)
	for _, s := range cfg.Blocks("server") {
		s.String("address", "")
		s.Require("name")
	}
	cfg.Block("tls").Bool("verify", true)
	cfg.Enum("mode", "slow", "slow", "fast")
	cfg.Duration("pause", 0)
	want := []string{
		`agent.hcl:2,3: invalid port; expected a whole number, found a string`,
		`agent.hcl:3,3: unknown attribute; "intervall" is not known here; did you mean "interval"?`,
		`agent.hcl:4,3: invalid since; "yesterday" is not a time; expected something like "2024-01-01T00:00:00Z" or "2024-01-01"`,
		`agent.hcl:6,3: invalid states; expected a string, found a map`,
		`agent.hcl:7,3: missing attribute; "name" must be set`,
		`agent.hcl:8,3: unknown attribute; "adress" is not known here; did you mean "address"?`,
		`agent.hcl:9,3: unknown block; "filter" is not known here; expected one of interval, mode, pause, port, server, since, states, tls`,
		`agent.hcl:10,3: unknown attribute; "tls" is written as a block: tls { … }`,
		`agent.hcl:11,3: invalid mode; "fats" is not allowed here; did you mean "fast"?`,
		`agent.hcl:12,3: invalid pause; "5" has no unit; did you mean "5s"?`,
	}
	if got := cfg.Err().Error(); got != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func TestGettersGiveTheValueOrTheDefault(t *testing.T) {
	cfg := NewConfig("nemo", block("config", 1,
		attr("s", String("x"), 2), attr("n", Int(7), 2), attr("f", Float(1.5), 2), attr("b", Bool(true), 2),
		attr("l", Strings("a", "b"), 2), attr("one", String("a"), 2), attr("m", StringMap(map[string]string{"k": "v"}), 2),
		attr("d", String("1d"), 2), attr("t", String("2024-01-02"), 2), attr("z", String("1KiB"), 2), attr("null", Null(), 2),
	))
	got := []any{
		cfg.String("s", ""), cfg.String("n", ""), cfg.Int("n", 0), cfg.Float("f", 0), cfg.Float("n", 0), cfg.Bool("b", false),
		cfg.Strings("l", nil), cfg.Strings("one", nil), cfg.StringMap("m", nil), cfg.Duration("d", 0),
		cfg.Time("t", time.Time{}).Format(time.RFC3339), cfg.Size("z", 0), cfg.String("null", "default"), cfg.Int("absent", 9),
		cfg.Has("null"), cfg.Block("none").String("x", "y"), len(cfg.Blocks("none")),
	}
	want := "[x 7 7 1.5 7 true [a b] [a] map[k:v] 24h0m0s 2024-01-02T00:00:00Z 1024 default 9 false y 0]"
	if fmt.Sprint(got) != want || cfg.Err() != nil {
		t.Errorf("got  %v, %v\nwant %s", got, cfg.Err(), want)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	root := block("config", 1, Node{Name: "password", Value: String("hunter2"), Sensitive: true, Range: at(2)})
	cfg := NewConfig("nemo", root)
	s := cfg.Secret("password")
	encoded, err := json.Marshal(map[string]any{"s": s})
	text := fmt.Sprintf("%v %+v %#v %s %s %v", s, s, s, s, encoded, err)
	cfg.Duration("password", 0)
	if text += cfg.Err().Error(); strings.Contains(text, "hunter2") {
		t.Errorf("printed: %s", text)
	}
	if s.Reveal() != "hunter2" {
		t.Errorf("revealed: %s", s.Reveal())
	}
}

func encoded(v Value) *bursarv1.Value { return encodeAll([]Value{v})[0] }

func TestTextThatIsNotUTF8TravelsAsItIs(t *testing.T) {
	p := encoded(String("a\xffb"))
	if string(p.GetBytesValue()) != "a\xffb" || decode(p).Str() != "a\xffb" {
		t.Errorf("encoded: %v", p)
	}
}

func TestValuesThatAreNoValueAreNull(t *testing.T) {
	for _, v := range []Value{{}, Null(), Float(math.NaN()), Float(math.Inf(1)), Time(time.Time{})} {
		if !v.IsNull() {
			t.Errorf("%v is not null", v)
		}
	}
}

func values() *rapid.Generator[Value] {
	leaf := rapid.OneOf(
		rapid.Just(Null()), rapid.Map(rapid.String(), String), rapid.Map(rapid.Int64(), Int),
		rapid.Map(rapid.Float64(), Float), rapid.Map(rapid.Bool(), Bool),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) Value { return String(string(b)) }),
	)
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 4), func(vs []Value) Value { return List(vs...) }),
		rapid.Map(rapid.MapOfN(rapid.String(), leaf, 0, 4), Map))
}

func TestValuesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, q := values().Draw(t, "value"), new(bursarv1.Value)
		p := encoded(v)
		data, err := proto.Marshal(p)
		if err == nil {
			err = proto.Unmarshal(data, q)
		}
		if err != nil {
			t.Fatal(err)
		}
		if again := encoded(decode(q)); !proto.Equal(p, again) {
			t.Fatalf("%v became %v", p, again)
		}
		if v.size() < len(data)*8/10-16 {
			t.Fatalf("estimated %d bytes, has %d", v.size(), len(data))
		}
	})
}

func TestJobThatDoesNotFitIsRefusedAndTheOthersPass(t *testing.T) {
	attributes := []Attribute{{Name: "user", Type: TypeString}, {Name: "load", Type: TypeFloat}}
	good := Job{Run: "good", Values: []Value{String("ann"), Int(1)}}
	cases := []struct {
		job  Job
		want string
	}{
		{Job{Values: good.Values}, "without a run name"},
		{Job{Run: "x", Values: good.Values[:1]}, "1 values for 2 attributes"},
		{Job{Run: "x", Values: []Value{Int(1), Int(1)}}, "a number for the attribute user of type string"},
		{Job{Run: "x", Values: []Value{String(strings.Repeat("x", maxJob+1)), Null()}}, "at most"},
		{Job{Run: "x", Values: good.Values, Formerly: []Job{{Run: "y", Values: good.Values[:1]}}}, "1 values for 2 attributes"},
		{Job{Run: "x", Values: good.Values, Formerly: slices.Repeat([]Job{good}, MaxFormerly+1)}, "other names"},
	}
	for _, c := range cases {
		var got Batch
		s := NewStream(attributes, func(_ context.Context, b Batch) error { got = b; return nil })
		sent := Batch{Jobs: []Job{c.job, good}, Checkpoint: []byte("1")}
		if err := s.Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if len(got.Jobs) != 1 || got.Jobs[0].Run != "good" || len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Message, c.want) {
			t.Errorf("%s: %d jobs, refused %.200v", c.want, len(got.Jobs), got.Refused)
		}
		if len(sent.Jobs) != 2 {
			t.Error("the caller's batch was changed")
		}
	}
}

func TestLargeBatchIsCutAndItsLastMessageHasTheCheckpoint(t *testing.T) {
	var b Batch
	for i := range 5000 {
		b.Jobs = append(b.Jobs, Job{Run: fmt.Sprint(i), Values: []Value{String(strings.Repeat("x", 2000))}})
	}
	b.Refused = []Refused{{Message: "bad \xff", Raw: make([]byte, 1<<20)}}
	b.Checkpoint, b.Skipped = []byte("end"), 3
	jobs, all := 0, messages(b)
	for i, m := range all {
		jobs += len(m.GetJobs())
		if size := proto.Size(m); size > pieceBytes+maxJob {
			t.Errorf("message %d has %d bytes", i, size)
		}
		if last := i == len(all)-1; (len(m.GetCheckpoint()) > 0) != last || (m.GetSkipped() > 0) != last {
			t.Errorf("message %d of %d: checkpoint %q", i, len(all), m.GetCheckpoint())
		}
	}
	if jobs != 5000 || len(all) < 4 {
		t.Errorf("%d jobs in %d messages", jobs, len(all))
	}
}

type personal struct{ Source }

func (personal) Describe() Description {
	return Description{
		Type: "mine", Version: "2.1", Mapping: "id = job.id\n",
		Attributes: []Attribute{{Name: "walltime", Type: TypeInt, Doc: "seconds"}},
	}
}

func TestStartedByHandAPluginSaysWhatItIs(t *testing.T) {
	cases := []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"x"}, 1, "", `source plugin "mine", version 2.1`},
		{[]string{"x", "--frobnicate"}, 1, "", "only supports -h"},
		{[]string{"x", "-h"}, 0, "walltime  int  seconds", ""},
		{[]string{"x", "--help"}, 0, "id = job.id", ""},
		{[]string{"x", "-version"}, 0, "mine 2.1", ""},
		{[]string{"x", "-mapping"}, 0, "id = job.id\n", ""},
	}
	for _, c := range cases {
		var out, errs bytes.Buffer
		code := byHand(func() Source { return personal{} }, c.args, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%v: %d\n%s\n%s", c.args, code, out.String(), errs.String())
		}
		if c.code == 0 && errs.Len() > 0 || c.code != 0 && out.Len() > 0 {
			t.Errorf("%v: wrong stream\n%s\n%s", c.args, out.String(), errs.String())
		}
	}
}

func TestLogLinesAreWhatTheDaemonReads(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logHandler(&out, "WARN"))
	log.Info("dropped")
	log.Warn("slow", "query", "sacct", "n", 3)
	var entry map[string]any
	if err := json.Unmarshal(out.Bytes(), &entry); err != nil {
		t.Fatal(err)
	}
	if entry["@message"] != "slow" || entry["@level"] != "warn" || entry["query"] != "sacct" || entry["@timestamp"] == nil {
		t.Errorf("entry: %v", entry)
	}
}

type careless struct{ personal }

func (careless) Configure(_ context.Context, cfg *Config) error {
	cfg.Int("n", 1)
	return nil // forgets cfg.Err
}

type blunt struct{ personal }

func (blunt) Configure(context.Context, *Config) error { return errors.New("no sacct here") }

func TestForgottenAndPlainErrorsOfConfigureAreDiagnostics(t *testing.T) {
	cfg := func() *Config { return NewConfig("x", block("config", 1, attr("m", Int(1), 2))) }
	if ds := configure(t.Context(), careless{}, cfg()); len(ds) != 1 || ds[0].Subject.Start.Line != 2 {
		t.Errorf("careless: %v", ds)
	}
	if ds := configure(t.Context(), blunt{}, cfg()); len(ds) != 1 || ds[0].Subject.Start.Line != 1 || ds[0].Detail != "no sacct here" {
		t.Errorf("blunt: %v", ds)
	}
}

func FuzzConfig(f *testing.F) {
	seed, err := proto.Marshal(&bursarv1.ConfigureRequest{Label: "x", Config: &bursarv1.Node{Block: true, Children: []*bursarv1.Node{{Name: "d"}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var r bursarv1.ConfigureRequest
		if proto.Unmarshal(data, &r) != nil {
			return
		}
		cfg := newConfig(&r)
		cfg.Duration("d", 0)
		cfg.Strings("d", nil)
		cfg.Block("b").Int("n", 0)
		cfg.ElementErrorf("d", 3, "x")
		if err := cfg.Err(); err == nil {
			t.Error("the problem is lost")
		}
	})
}

func TestWhatIsPushedAtOnceIsOneMessageOrAnError(t *testing.T) {
	large := record.Record{ID: "a", State: strings.Repeat("x", 3<<20), Stop: record.None, Submit: record.None}
	b := Batch{Records: []record.Record{large, large, large}, Stops: []Stop{{ID: "a", At: 1}}, Refused: []Refused{{Raw: make([]byte, 64<<10)}}}
	all := messages(b)
	if err := addPushed(all[len(all)-1], &b); err != nil {
		t.Fatal(err)
	}
	if last := all[len(all)-1]; len(last.GetRecords()) != 3 || len(last.GetStops()) != 1 {
		t.Errorf("%d records, %d stops", len(last.GetRecords()), len(last.GetStops()))
	}
	b.Records = append(b.Records, large)
	if err := addPushed(messages(b)[0], &b); err == nil || !strings.Contains(err.Error(), "kept together") {
		t.Error(err)
	}
}

func TestBody_SensitiveValue_NoProblemQuotesIt(t *testing.T) {
	const secret = "hunter2"
	for name, ask := range map[string]func(*Body){
		"a size":       func(b *Body) { b.Size("x", 0) },
		"a duration":   func(b *Body) { b.Duration("x", 0) },
		"a time":       func(b *Body) { b.Time("x", time.Time{}) },
		"one of some":  func(b *Body) { b.Enum("x", "", "hunter", "b") },
		"the plugin's": func(b *Body) { b.Errorf("x", "%q is not an address", b.String("x", "")) },
		"an element":   func(b *Body) { b.ElementErrorf("x", 0, "%q is not an address", b.String("x", "")) },
		"a warning":    func(b *Body) { b.Warnf("x", "%q is short", b.String("x", "")) },
	} {
		cfg := NewConfig("test", block("config", 1, Node{Name: "x", Value: String(secret), Sensitive: true, Range: at(2)}))
		ask(cfg.Body)
		problems := *cfg.Body.problems
		if len(problems) != 1 || problems[0].Subject != at(2) || strings.Contains(fmt.Sprint(problems), secret) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
