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

	"github.com/bursar-accounting/bursar/hcl"
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
	var into struct {
		Port     int           `hcl:"port,optional" default:"1"`
		Interval time.Duration `hcl:"interval,optional" default:"1m"`
		Since    hcl.Time      `hcl:"since,optional"`
		States   hcl.Strings   `hcl:"states,optional"`
		Servers  []struct {
			Name    string `hcl:"name"`
			Address string `hcl:"address,optional"`
		} `hcl:"server,block"`
		TLS *struct {
			Verify bool `hcl:"verify,optional" default:"true"`
		} `hcl:"tls,block"`
		Mode  string        `hcl:"mode,optional" default:"slow" allowed:"slow fast"`
		Pause time.Duration `hcl:"pause,optional"`
	}
	_ = cfg.Decode(&into)
	want := []string{
		`agent.hcl:2,3: invalid value for "port"; expected a number, not a string`,
		`agent.hcl:3,3: unknown attribute "intervall"; did you mean "interval"?`,
		`agent.hcl:4,3: invalid value for "since"; "yesterday" is not a time; expected RFC 3339, like "2024-01-01T00:00:00Z", or a day, like "2024-01-01"`,
		`agent.hcl:6,3: invalid value for "states"; expected a string, not a map`,
		`agent.hcl:7,3: missing attribute; name must be set here`,
		`agent.hcl:8,3: unknown attribute "adress"; did you mean "address"?`,
		`agent.hcl:9,3: unknown block "filter"; expected one of server, tls`,
		`agent.hcl:10,3: unknown attribute "tls"; tls is a block here; did you mean tls { … }?`,
		`agent.hcl:11,3: invalid value for "mode"; "fats" is not allowed here; did you mean "fast"?`,
		`agent.hcl:12,3: invalid value for "pause"; "5" has no unit; did you mean "5s"?`,
	}
	if got := cfg.Err().Error(); got != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func TestABodyKnowsItsAttributesAndBlocks(t *testing.T) {
	cfg := NewConfig("nemo", block("config", 1, attr("s", String("x"), 2), attr("null", Null(), 3), block("b", 4)))
	if !cfg.Has("s") || cfg.Has("null") || cfg.Has("none") || cfg.Value("s").Str() != "x" || !cfg.Value("null").IsNull() {
		t.Error("an attribute is another one")
	}
	if cfg.Block("b").Range() != at(4) || cfg.Block("none") != nil || cfg.Block("none").Has("x") || len(cfg.Blocks("none")) != 0 {
		t.Error("a block is another one")
	}
	if err := cfg.Err(); err == nil || strings.Count(err.Error(), "unknown") != 3 {
		t.Errorf("what was not decoded is known: %v", err)
	}
}

func encoded(v Value) *bursarv1.Value { return encodeAll([]Value{v})[0] }

func TestTextThatIsNotUTF8TravelsAsItIs(t *testing.T) {
	p := encoded(String("a\xffb"))
	if string(p.GetBytesValue()) != "a\xffb" || decodeValue(p).Str() != "a\xffb" {
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
		if again := encoded(decodeValue(q)); !proto.Equal(p, again) {
			t.Fatalf("%v became %v", p, again)
		}
		if v.encodedSize() < len(data)*8/10-16 {
			t.Fatalf("estimated %d bytes, has %d", v.encodedSize(), len(data))
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
	jobs, all := 0, messagesOf(b)
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
	var into struct {
		N int `hcl:"n,optional"`
	}
	_ = cfg.Decode(&into)
	return nil // forgets cfg.Err
}

type blunt struct{ personal }

func (blunt) Configure(context.Context, *Config) error { return errors.New("no sacct here") }

func TestForgottenAndPlainErrorsOfConfigureAreDiagnostics(t *testing.T) {
	cfg := func() *Config { return NewConfig("x", block("config", 1, attr("m", Int(1), 2))) }
	if ds := configureWith(t.Context(), careless{}, cfg()); len(ds) != 1 || ds[0].Subject.Start.Line != 2 {
		t.Errorf("careless: %v", ds)
	}
	if ds := configureWith(t.Context(), blunt{}, cfg()); len(ds) != 1 || ds[0].Subject.Start.Line != 1 || ds[0].Detail != "no sacct here" {
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
		var into struct {
			D time.Duration  `hcl:"d,optional"`
			E hcl.Expression `hcl:"e,optional"`
			L hcl.Strings    `hcl:"l,optional"`
			B []struct {
				N int `hcl:"n,optional"`
			} `hcl:"b,block"`
		}
		_ = cfg.Decode(&into)
		cfg.ElementErrorf("d", 3, "x")
		if err := cfg.Err(); err == nil {
			t.Error("the problem is lost")
		}
	})
}

func TestWhatIsPushedAtOnceIsOneMessageOrAnError(t *testing.T) {
	large := record.Record{ID: "a", State: strings.Repeat("x", 3<<20), Stop: record.None, Submit: record.None}
	b := Batch{Records: []record.Record{large, large, large}, Stops: []Stop{{ID: "a", At: 1}}, Refused: []Refused{{Raw: make([]byte, 64<<10)}}}
	all := messagesOf(b)
	if err := addPushed(all[len(all)-1], &b); err != nil {
		t.Fatal(err)
	}
	if last := all[len(all)-1]; len(last.GetRecords()) != 3 || len(last.GetStops()) != 1 {
		t.Errorf("%d records, %d stops", len(last.GetRecords()), len(last.GetStops()))
	}
	b.Records = append(b.Records, large)
	if err := addPushed(messagesOf(b)[0], &b); err == nil || !strings.Contains(err.Error(), "kept together") {
		t.Error(err)
	}
}

func TestBody_SensitiveValue_NoProblemQuotesIt(t *testing.T) {
	const secret = "hunter2"
	type into struct {
		Size     hcl.Size      `hcl:"size,optional"`
		Duration time.Duration `hcl:"duration,optional"`
		Time     hcl.Time      `hcl:"time,optional"`
		Number   int           `hcl:"number,optional"`
		OneOf    string        `hcl:"one_of,optional" allowed:"hunter b"`
		Path     hcl.Absolute  `hcl:"path,optional"`
		Any      string        `hcl:"any,optional"`
		List     hcl.Strings   `hcl:"list,optional"`
		Warn     string        `hcl:"warn,optional"`
	}
	for name, ask := range map[string]func(*Body){
		"size": nil, "duration": nil, "time": nil, "number": nil, "one_of": nil, "path": nil, "unknown": nil,
		"any":  func(b *Body) { b.Errorf("any", "%q is not an address", secret) },
		"list": func(b *Body) { b.ElementErrorf("list", 0, "%q is not an address", secret) },
		"warn": func(b *Body) { b.Warnf("warn", "%q is short", secret) },
	} {
		cfg := NewConfig("test", block("config", 1, Node{Name: name, Value: String(secret), Sensitive: true, Range: at(2)}))
		_ = cfg.Decode(new(into))
		if ask != nil {
			ask(cfg.Body)
		}
		problems := *cfg.Body.problems
		if len(problems) != 1 || problems[0].Subject != at(2) || strings.Contains(fmt.Sprint(problems), secret) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
