package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestTheJSONIsThatOfAuditor(t *testing.T) {
	start, _ := record.ParseTime("2023-02-24T00:27:58Z")
	stop, _ := record.ParseTime("2023-02-24T03:41:35Z")
	r := record.Record{
		ID:   "slurm-4711",
		Meta: record.Meta{{Key: "group_id", Values: []string{"atlas"}}, {Key: "site_id", Values: []string{"hpc"}}, {Key: "user_id", Values: []string{"alice"}}},
		Components: []record.Component{
			{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPSPEC06", Value: 10}}},
			{Name: "Memory", Amount: 16000},
		},
		Start: start, Stop: stop, Submit: record.None,
	}
	want := `{"record_id":"slurm-4711","meta":{"group_id":["atlas"],"site_id":["hpc"],"user_id":["alice"]},"components":[{"name":"Cores","amount":8,"scores":[{"name":"HEPSPEC06","value":10.0}]},{"name":"Memory","amount":16000,"scores":[]}],"start_time":"2023-02-24T00:27:58Z","stop_time":"2023-02-24T03:41:35Z","runtime":11617}`
	if got := string(AppendJSON(nil, &r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	open := record.Record{ID: "a\"\\\n\x01<é>", Start: start + 120000, Stop: record.None, Submit: record.None, Meta: record.Meta{{Key: "k"}}}
	want = `{"record_id":"a\"\\\n\u0001<é>","meta":{"k":[]},"components":[],"start_time":"2023-02-24T00:27:58.120Z","stop_time":null,"runtime":null}`
	if got := string(AppendJSON(nil, &open)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	bare := record.Record{ID: "x", Start: start + 1, Stop: start, Submit: record.None}
	want = `{"record_id":"x","meta":null,"components":[],"start_time":"2023-02-24T00:27:58.000001Z","stop_time":"2023-02-24T00:27:58Z","runtime":0}`
	if got := string(AppendJSON(nil, &bare)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheJSONOfV1HasEveryField(t *testing.T) {
	r := goldenRecord()
	x := V1Extra{Origin: record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}, Rank: record.RankScheduler, Seq: 42, Received: r.Stop, Changed: record.None}
	got := AppendV1JSON(nil, &r, x)
	if want := golden(t, "record-v1.json", append(bytes.Clone(got), '\n')); string(got) != strings.TrimSuffix(string(want), "\n") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	bare := record.Record{ID: "x", Start: 1, Stop: 0, Submit: record.None}
	want := `{"record_id":"x","meta":null,"components":[],"start_time":"1970-01-01T00:00:00.000001Z","stop_time":"1970-01-01T00:00:00Z","runtime":0,"submit_time":null,"state":null,"exit_code":null,"exit_signal":null,"negative":true,"origin":"pushed","rank":"pushed","received":null,"changed":null,"seq":7}`
	if got := string(AppendV1JSON(nil, &bare, V1Extra{Rank: record.RankPush, Received: record.None, Changed: record.None, Seq: 7})); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestScoresArePrintedAsFloats(t *testing.T) {
	cases := map[float64]string{
		0: "0.0", 1: "1.0", 10: "10.0", 21.5: "21.5", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e16", 1.5e300: "1.5e300",
		123456789012345680: "1.2345678901234568e17", 0.00001: "0.00001", 0.000001: "1e-6", 1.25e-7: "1.25e-7", 5e-324: "5e-324",
		math.MaxFloat64: "1.7976931348623157e308", 999999999999999.9: "999999999999999.9", 2251799813685248.5: "2251799813685248.5",
		9007199254740993: "9007199254740992.0", math.Inf(1): "null",
	}
	for v, want := range cases {
		if got := string(appendNumber(nil, v)); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestNumbersComeBackEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(0, math.MaxFloat64).Draw(t, "value")
		if rapid.Bool().Draw(t, "short") {
			v = float64(rapid.IntRange(0, 99999).Draw(t, "digits")) / math.Pow10(rapid.IntRange(0, 8).Draw(t, "scale"))
		}
		text := string(appendNumber(nil, v))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || got != v {
			t.Fatalf("%v as %s: %v, %v", v, text, got, err)
		}
		if !json.Valid([]byte(text)) || !strings.ContainsAny(text, ".e") {
			t.Fatalf("%s is no float in JSON", text)
		}
	})
}

// add reads what a client posts where no kinds are known.
func add(body []byte) (record.Record, error) { return DecodeAdd(body, nil) }

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := auditors().Draw(t, "record")
		body := AppendJSON(nil, &r)
		if !json.Valid(body) {
			t.Fatalf("no JSON: %s", body)
		}
		for name, decode := range map[string]func([]byte) (record.Record, error){"add": add, "stored": DecodeRecordJSON[[]byte]} {
			got, err := decode(body)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, body)
			}
			if diff := sameRecord(&r, &got); diff != "" {
				t.Fatal(name, diff)
			}
		}
	})
}

func TestDecodeAdd_KindIsWrittenOrByName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := records().Draw(t, "record")
		kinds := record.Kinds{}
		for i := range r.Components {
			if rapid.Bool().Draw(t, "known") {
				kinds[r.Components[i].Name] = record.Total
			}
		}
		written, silent := AppendV1JSON(nil, &r, V1Extra{Received: 5}), AppendJSON(nil, &r)
		var tree any
		numbers := json.NewDecoder(bytes.NewReader(silent))
		numbers.UseNumber()
		if err := numbers.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		sorted, _ := json.Marshal(tree) // keys of a component in another order
		check := func(body []byte, want func(c record.Component) record.Kind) {
			err := DecodeAdds(slices.Concat([]byte("["), body, []byte("]")), kinds, func(got record.Record) error {
				for i, c := range got.Components {
					if c.Kind != want(r.Components[i]) {
						t.Errorf("%s is a %s\n%s", c.Name, c.Kind, body)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, body)
			}
		}
		check(written, func(c record.Component) record.Kind { return c.Kind })
		check(silent, func(c record.Component) record.Kind { return kinds[c.Name] })
		check(sorted, func(c record.Component) record.Kind { return kinds[c.Name] })
	})
}

func TestWhatV1WritesIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := records().Draw(t, "record")
		body := AppendV1JSON(nil, &r, V1Extra{Origin: record.Origin{Agent: "a\"", Type: "b", Label: "c"}, Received: 5, Changed: record.None})
		got, err := DecodeRecordJSON(body)
		if err != nil || !json.Valid(body) {
			t.Fatalf("%v\n%s", err, body)
		}
		if diff := sameRecord(&r, &got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAnyEncoderOfJSONIsUnderstood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := auditors().Draw(t, "record")
		var tree any
		plain := json.NewDecoder(bytes.NewReader(AppendJSON(nil, &r)))
		plain.UseNumber()
		if err := plain.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		body, _ := json.MarshalIndent(tree, " ", "\t") // escapes <, > and &, sorts keys
		got, err := DecodeAdd(body, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if diff := sameRecord(&r, &got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// body is a valid record with the parts given.
func body(id, meta, components, start, stop string) string {
	return fmt.Sprintf(`{"record_id":%s,"meta":%s,"components":%s,"start_time":%s,"stop_time":%s}`, id, meta, components, start, stop)
}

const (
	someTime  = `"2023-02-24T00:27:58Z"`
	someCores = `[{"name":"Cores","amount":8,"scores":[]}]`
)

func TestAcceptedBodies(t *testing.T) {
	at := func(s string) record.Time {
		v, err := record.ParseTime(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	base := record.Record{ID: "r", Start: at("2023-02-24T00:27:58Z"), Stop: record.None, Submit: record.None}
	with := func(change func(*record.Record)) record.Record {
		r := base
		change(&r)
		return r
	}
	cases := []struct {
		name, body string
		want       record.Record
	}{
		{"the least", `{"record_id":"r","components":[],"start_time":` + someTime + `}`, base},
		{"nulls", body(`"r"`, "null", "[]", someTime, "null"), base},
		{"an empty meta is not an absent one", body(`"r"`, "{}", "[]", someTime, "null"), with(func(r *record.Record) { r.Meta = record.Meta{} })},
		{"an empty list of values", body(`"r"`, `{"k":[]}`, "[]", someTime, "null"), with(func(r *record.Record) { r.Meta = record.Meta{{Key: "k"}} })},
		{"keys are sorted, values are not", body(`"r"`, `{"b":["2","1","2"],"a":["x"]}`, "[]", someTime, "null"), with(func(r *record.Record) {
			r.Meta = record.Meta{{Key: "a", Values: []string{"x"}}, {Key: "b", Values: []string{"2", "1", "2"}}}
		})},
		{"components keep their order, also twice the same name", body(`"r"`, "null", `[{"name":"b","amount":1,"scores":[{"name":"z","value":1},{"name":"a","value":2.5e0}]},{"scores":[],"amount":9223372036854775807,"name":"b"}]`, someTime, "null"), with(func(r *record.Record) {
			r.Components = []record.Component{{Name: "b", Amount: 1, Scores: []record.Score{{Name: "z", Value: 1}, {Name: "a", Value: 2.5}}}, {Name: "b", Amount: math.MaxInt64}}
		})},
		{"unknown fields are passed over", `{"runtime":-5,"record_id":"r","x":{"a":[1,{"b":null}],"a":true},"components":[{"name":"c","amount":0,"unit":"total","scores":[{"name":"s","value":0,"unit":"x"}]}],"start_time":` + someTime + `,"submit_time":7,"runtime":1}`, with(func(r *record.Record) {
			r.Components = []record.Component{{Name: "c", Scores: []record.Score{{Name: "s"}}}}
		})},
		{"escapes", body(`"\u0072\/\ud83d\ude00\u00e9\b\f\n\r\t\"\\\u0000"`, "null", "[]", someTime, "null"), with(func(r *record.Record) { r.ID = "r/😀é\b\f\n\r\t\"\\\x00" })},
		{"an escaped key", `{"\u0072ecord_id":"r","components":[],"start_time":` + someTime + `}`, base},
		{"blanks", " {\t\"record_id\" :\n\"r\" , \"components\" : [ ] ,\r\n \"start_time\":" + someTime + " } \n", base},
		{"any offset", body(`"r"`, "null", "[]", `"2023-02-24T05:57:58.5+05:30"`, `"2023-02-23 19:27:58-0500"`), with(func(r *record.Record) {
			r.Start, r.Stop = base.Start+500_000, base.Start
		})},
		{"a stop before the start, cut to microseconds", body(`"r"`, "null", "[]", someTime, `"2023-02-24T00:27:57.123456789Z"`), with(func(r *record.Record) { r.Stop = base.Start - 1_000_000 + 123456 })},
		{"256 graphemes of two bytes", body(`"`+strings.Repeat("ё", 256)+`"`, "null", "[]", someTime, "null"), with(func(r *record.Record) { r.ID = strings.Repeat("ё", 256) })},
		{"minus zero as a score", body(`"r"`, "null", `[{"name":"c","amount":0,"scores":[{"name":"s","value":-0.0}]}]`, someTime, "null"), with(func(r *record.Record) {
			r.Components = []record.Component{{Name: "c", Scores: []record.Score{{Name: "s"}}}}
		})},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := DecodeAdd([]byte(c.body), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := sameRecord(&c.want, &got); diff != "" {
				t.Error(diff)
			}
			if c.want.Digest() != got.Digest() {
				t.Error("another digest")
			}
		})
	}
}

func TestRefusedBodiesNameThePlace(t *testing.T) {
	long := strings.Repeat("a", 257)
	component := func(s string) string { return body(`"r"`, "null", s, someTime, "null") }
	cases := []struct{ name, body, want string }{
		{"nothing", ``, "EOF while parsing a value at line 1 column 0"},
		{"an empty object", `{}`, "missing field `record_id` at line 1 column 2"},
		{"no components", `{"record_id":"r"}`, "missing field `components` at line 1 column 17"},
		{"no start", `{"record_id":"r","components":[]}`, "missing field `start_time` at line 1 column 33"},
		{"on a later line", "{\n \"record_id\": \"r\"\n}", "missing field `components` at line 3 column 1"},
		{"a number for text", `{"record_id":1}`, "invalid type: integer `1`, expected a string (record_id) at line 1 column 14"},
		{"null for text", `{"record_id":null}`, "invalid type: null, expected a string (record_id) at line 1 column 17"},
		{"a list for the record", `[]`, "invalid type: sequence, expected struct RecordAdd at line 1 column 0"},
		{"null components", `{"components":null}`, "invalid type: null, expected a sequence (components) at line 1 column 18"},
		{"a blank id", `{"record_id":" "}`, "missing field `components` at line 1 column 17"},
		{"a blank id, complete", body(`" \t"`, "null", "[]", someTime, "null"), `Parsing ' 	' failed (record_id) at line 1 column 18`},
		{"a long id", body(`"`+long+`"`, "null", "[]", someTime, "null"), "Parsing '" + long + "' failed (record_id) at line 1 column 272"},
		{"a blank key", body(`"r"`, `{"":[]}`, "[]", someTime, "null"), `Parsing '' failed (meta[""]) at line 1 column 27`},
		{"a blank value", body(`"r"`, `{"k":["v",""]}`, "[]", someTime, "null"), `Parsing '' failed (meta["k"][1]) at line 1 column 37`},
		{"text for values", body(`"r"`, `{"k":"v"}`, "[]", someTime, "null"), `invalid type: string "v", expected a sequence (meta["k"]) at line 1 column 32`},
		{"a key twice", body(`"r"`, `{"k":[],"a":[],"k":[]}`, "[]", someTime, "null"), "duplicate field `k` (meta) at line 1 column 46"},
		{"a field twice", `{"record_id":"r","record_id":"r"}`, "duplicate field `record_id` at line 1 column 28"},
		{"no scores", component(`[{"name":"a","amount":1}]`), "missing field `scores` (components[0]) at line 1 column 66"},
		{"a negative amount", component(`[{"name":"a","scores":[],"amount":-1}]`), "Parsing '-1' failed. (components[0].amount) at line 1 column 79"},
		{"a float amount", component(`[{"name":"a","scores":[],"amount":8.0}]`), "invalid type: floating point `8.0`, expected i64 (components[0].amount) at line 1 column 80"},
		{"an exponent in an amount", component(`[{"name":"a","scores":[],"amount":1e3}]`), "invalid type: floating point `1e3`, expected i64 (components[0].amount) at line 1 column 80"},
		{"minus zero", component(`[{"name":"a","scores":[],"amount":-0}]`), "invalid type: floating point `-0`, expected i64 (components[0].amount) at line 1 column 79"},
		{"an amount over 64 bits", component(`[{"name":"a","scores":[],"amount":9223372036854775808}]`), "invalid value: integer `9223372036854775808`, expected i64 (components[0].amount) at line 1 column 96"},
		{"text for an amount", component(`[{"name":"a","scores":[],"amount":"8"}]`), "invalid type: string \"8\", expected i64 (components[0].amount) at line 1 column 79"},
		{"a negative score", component(`[{"name":"a","amount":1,"scores":[{"name":"s","value":1},{"name":"s","value":-0.5}]}]`), "Parsing '-0.5' failed. (components[0].scores[1].value) at line 1 column 124"},
		{"an endless score", component(`[{"name":"a","amount":1,"scores":[{"name":"s","value":1e999}]}]`), "number out of range (components[0].scores[0].value) at line 1 column 101"},
		{"a score without value", component(`[{"name":"a","amount":1,"scores":[{"name":"s"}]}]`), "missing field `value` (components[0].scores[0]) at line 1 column 88"},
		{"no offset", body(`"r"`, "null", "[]", `"2023-02-24T00:27:58"`, "null"), `"2023-02-24T00:27:58" is not an RFC 3339 time: want for example 2026-11-21T08:15:00Z (start_time) at line 1 column 79`},
		{"null start", body(`"r"`, "null", "[]", `null`, "null"), "invalid type: null, expected an RFC 3339 formatted date and time string (start_time) at line 1 column 62"},
		{"a number for a time", body(`"r"`, "null", "[]", `7`, "null"), "invalid type: integer `7`, expected an RFC 3339 formatted date and time string (start_time) at line 1 column 59"},
		{"a word", `{"record_id":nul}`, "invalid character '}' in literal null (expecting 'l') (record_id) at line 1 column 17"},
		{"rubbish", `{"record_id":?}`, "invalid character '?' at start of value (record_id) at line 1 column 14"},
		{"true", `true`, "invalid type: boolean `true`, expected struct RecordAdd at line 1 column 4"},
		{"a bare key", `{record_id:1}`, "invalid character 'r' at start of value at line 1 column 2"},
		{"a comma at the end", `{"x":1,}`, "invalid character ',' at start of value at line 1 column 7"},
		{"no colon", `{"x" 1}`, "invalid character '1' after object name (expecting ':') at line 1 column 6"},
		{"no comma", `{"x":1 "y":2}`, `invalid character '"' after object value (expecting ',' or '}') at line 1 column 8`},
		{"cut in an object", `{"x":1`, "EOF while parsing a value at line 1 column 6"},
		{"cut in a list", `{"x":[1`, "EOF while parsing a value at line 1 column 7"},
		{"cut in text", `{"x":"a`, "EOF while parsing a value at line 1 column 7"},
		{"a bad number", `{"x":01}`, "invalid character '1' after object value (expecting ',' or '}') at line 1 column 7"},
		{"a bad escape", `{"x":"\q"}`, "invalid escape sequence `\\q` in string at line 1 column 7"},
		{"a lone surrogate", `{"x":"\ud800"}`, "invalid surrogate pair `\\ud800\"}` in string at line 1 column 7"},
		{"a lone second surrogate", `{"x":"\udc00"}`, "invalid surrogate pair `\\udc00\"}` in string at line 1 column 7"},
		{"two first surrogates", `{"x":"\ud800\ud800"}`, "invalid surrogate pair `\\ud800\\ud800` in string at line 1 column 7"},
		{"bad hex", `{"x":"\u12g4"}`, "invalid escape sequence `\\u12g4` in string at line 1 column 7"},
		{"signed hex", `{"x":"\u+123"}`, "invalid escape sequence `\\u+123` in string at line 1 column 7"},
		{"a control character", "{\"x\":\"\x01\"}", `invalid character '\x01' in string (expecting non-control character) at line 1 column 7`},
		{"no UTF-8", "{\"x\":\"\xff\"}", "invalid UTF-8 at line 1 column 7"},
		{"no UTF-8 behind an escape", "{\"x\":\"\\n\xff\"}", "invalid UTF-8 at line 1 column 9"},
		{"more behind it", body(`"r"`, "null", "[]", someTime, "null") + "x", "trailing characters at line 1 column 99"},
		{"too deep", `{"x":` + strings.Repeat("[", 20_000) + `}`, "exceeded max depth at line 1 column 10005"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeAdd([]byte(c.body), nil)
			if _, ok := errors.AsType[*JSONError](err); !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff("Json deserialize error: "+c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTooLargeRecordsAreRefused(t *testing.T) {
	cases := map[string]string{
		"an id over 1 KiB":     body(`"`+strings.Repeat("👩‍👩‍👧", 100)+`"`, "null", "[]", someTime, "null"),
		"a record over 256 KB": body(`"r"`, `{"k":["`+strings.Repeat(strings.Repeat("x", 255)+`","`, 1100)+`x"]}`, "[]", someTime, "null"),
		"too many values":      body(`"r"`, `{"k":["`+strings.Repeat(`x","`, 30000)+`x"]}`, "[]", someTime, "null"),
	}
	for name, text := range cases {
		if _, err := DecodeAdd([]byte(text), nil); err == nil || !strings.Contains(err.Error(), "larger than") && !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABulkIsReadRecordByRecord(t *testing.T) {
	one, two := body(`"1"`, "null", someCores, someTime, "null"), body(`"2"`, "{}", "[]", someTime, someTime)
	stop := errors.New("enough")
	cases := []struct {
		name, body string
		ids        []string
		want       string
	}{
		{"none", `[]`, nil, ""},
		{"two", "[" + one + " ,\n" + two + "]", []string{"1", "2"}, ""},
		{"twice the same", "[" + one + "," + one + "]", []string{"1", "1"}, ""},
		{"a bad one", "[" + one + ",{}]", []string{"1"}, "Json deserialize error: missing field `record_id` ([1]) at line 1 column " + strconv.Itoa(len(one)+4)},
		{"a bad part", "[" + body(`"1"`, "null", `[{"name":"a","scores":[],"amount":-1}]`, someTime, "null") + "]", nil, "Json deserialize error: Parsing '-1' failed. ([0].components[0].amount) at line 1 column 80"},
		{"no list", one, nil, "Json deserialize error: invalid type: map, expected a sequence at line 1 column 0"},
		{"no comma", "[" + one + one + "]", []string{"1"}, "Json deserialize error: invalid character '{' after array element (expecting ',' or ']') ([1]) at line 1 column " + strconv.Itoa(len(one)+2)},
		{"a comma at the end", "[" + one + ",]", []string{"1"}, "Json deserialize error: invalid character ',' at start of value ([1]) at line 1 column " + strconv.Itoa(len(one)+2)},
		{"cut", "[" + one, []string{"1"}, "Json deserialize error: EOF while parsing a value ([1]) at line 1 column " + strconv.Itoa(len(one)+1)},
		{"more behind it", "[]]", nil, "Json deserialize error: trailing characters at line 1 column 3"},
		{"the caller's end", "[" + body(`"stop"`, "null", "[]", someTime, "null") + "," + one + "]", []string{"stop"}, "enough"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var ids []string
			err := DecodeAdds([]byte(c.body), nil, func(r record.Record) error {
				ids = append(ids, r.ID)
				if r.ID == "stop" {
					return stop
				}
				return nil
			})
			if diff := cmp.Diff(c.ids, ids); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAnUpdateNeedsComponentsAndAStop(t *testing.T) {
	cases := []struct{ name, body, want string }{
		{"the least", `{"record_id":"r","components":[],"stop_time":` + someTime + `}`, ""},
		{"all", body(`"r"`, `{"k":["v"]}`, someCores, someTime, someTime), ""},
		{"no components", `{"record_id":"r","stop_time":` + someTime + `}`, "missing field `components` at line 1 column 52"},
		{"no stop", `{"record_id":"r","components":[]}`, "missing field `stop_time` at line 1 column 33"},
		{"null stop", body(`"r"`, "null", "[]", "null", "null"), "invalid type: null, expected an RFC 3339 formatted date and time string (stop_time) at line 1 column 79"},
		{"a bad component", body(`"r"`, "null", "[{}]", someTime, someTime), "missing field `name` (components[0]) at line 1 column 45"},
	}
	for _, c := range cases {
		id, stop, err := DecodeUpdate([]byte(c.body))
		switch {
		case c.want == "" && (err != nil || id != "r" || stop.String() != "2023-02-24T00:27:58Z"):
			t.Errorf("%s: %s, %s, %v", c.name, id, stop, err)
		case c.want != "" && (err == nil || err.Error() != "Json deserialize error: "+c.want):
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func FuzzDecodeAdd(f *testing.F) {
	r := goldenRecord()
	f.Add(AppendJSON(nil, &r))
	f.Add([]byte(body(`"\ud83d\ude00"`, `{"k":[],"a":["\n"]}`, someCores, someTime, `"2023-02-24 00:27:58.5+01:00"`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeAdd(b, nil)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatal("accepted invalid JSON")
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := DecodeAdd(AppendV1JSON(nil, &got, V1Extra{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := sameRecord(&got, &again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func benchmarkBody(n int) []byte {
	list := benchmarkRecords(n)
	b := []byte{'['}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSON(b, &list[i])
	}
	return append(b, ']')
}

func BenchmarkDecodeAdds(b *testing.B) {
	body := benchmarkBody(1000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeAdds(body, nil, func(record.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	perRecord(b, 1000)
}

func BenchmarkAppendJSON(b *testing.B) {
	list := benchmarkRecords(1000)
	var buf []byte
	for b.Loop() {
		for i := range list {
			buf = AppendJSON(buf[:0], &list[i])
		}
	}
	perRecord(b, 1000)
}

// TestDecodeAdds_Mutated_TakesOnlyJSON removes and replaces each byte of a body, and
// compares with what two other decoders take.
func TestDecodeAdds_Mutated_TakesOnlyJSON(t *testing.T) {
	const body = `[{"record_id":"a\/\u00e9\n","x":-1.5e+3,"meta":{"k":["v","é"],"l":[]},"y":null,"components":[{"name":"c","amount":10,"z":"\"",` +
		`"scores":[{"name":"s","value":0.25,"w":{"a":[1,{}]}}]}], "start_time": "2023-02-24T00:27:58Z" ,"stop_time":null,"u":true,"v":[]},` +
		`{"record_id":"b","components":[],"start_time":"2023-02-24T00:27:58Z","t":false}]`
	parts := []string{"", ",", ":", "[", "]", "{", "}", `"`, `\`, `\ud83d\ude00`, `\ud83d`, "\xc3\xa9", "\xc3", "0", "-", "e", ".", "+", " ", "\x01", "\x00", "null", "nul"}
	for at := range body {
		for _, part := range parts {
			for cut := range 2 {
				changed := []byte(body[:at] + part + body[at+cut:])
				err := DecodeAdds(changed, nil, func(record.Record) error { return nil })
				syntax := syntaxError(changed)
				if err == nil && (syntax != nil || !json.Valid(changed)) {
					t.Errorf("taken: %s", changed)
				}
				if err != nil && syntax == nil && strings.Contains(err.Error(), "EOF") {
					t.Errorf("%v, but all is JSON: %s", err, changed)
				}
			}
		}
	}
	if err := DecodeAdds([]byte(body), nil, func(record.Record) error { return nil }); err != nil {
		t.Error(err)
	}
}

// syntaxError is what jsontext finds wrong with a body.
func syntaxError(body []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	if err := dec.SkipValue(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("trailing characters")
	}
	return nil
}

func TestChange_LineOfTheLedger_HasItsRecordAndWhatItSupersedes(t *testing.T) {
	var d Lender
	rapid.Check(t, func(t *rapid.T) {
		r := records().Draw(t, "record")
		seq, former := rapid.Int64Min(1).Draw(t, "seq"), Former{Seq: uint64(rapid.Int64Min(1).Draw(t, "former")), Stop: times().Draw(t, "stop")}
		shown, supersedes := rapid.Bool().Draw(t, "shown"), rapid.Bool().Draw(t, "supersedes")
		now, then := []byte("null"), []byte("null")
		if shown {
			now = AppendV1JSON(nil, &r, V1Extra{Received: 5, Seq: uint64(seq)})
		}
		if supersedes {
			old := r
			old.Stop = former.Stop
			then = AppendV1JSON(nil, &old, V1Extra{Received: 5, Seq: former.Seq})
		} else {
			former = Former{}
		}
		id, _ := json.Marshal(r.ID)
		line := fmt.Appendf(nil, `{"seq":%d,"record_id":%s,"record":%s,"supersedes":%s}`, seq, id, now, then)
		d.Reset()
		c, err := d.Change(line)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if c.Seq != uint64(seq) || c.ID != r.ID || c.Shown != shown || c.Former != former {
			t.Errorf("%+v of\n%s", c, line)
		}
		if diff := sameRecord(&r, &c.Record); shown && diff != "" {
			t.Error(diff)
		}
	})
}

func TestChange_LineThatIsNotWhole_IsAnError(t *testing.T) {
	good := fmt.Sprintf(`{"seq":7,"record_id":"a","record":%s,"supersedes":{"seq":6,"stop_time":%s}}`, body(`"a"`, `{}`, someCores, someTime, someTime), someTime)
	if _, err := new(Lender).Change([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string]string{
		"no seq":               strings.Replace(good, `"seq":7,`, "", 1),
		"seq 0":                strings.Replace(good, `"seq":7`, `"seq":0`, 1),
		"no record":            `{"seq":7,"record_id":"a","supersedes":null}`,
		"no supersedes":        `{"seq":7,"record_id":"a","record":null}`,
		"a former without seq": strings.Replace(good, `"seq":6,`, "", 1),
		"a negative amount":    strings.Replace(good, `"amount":8`, `"amount":-8`, 1),
		"half of it":           good[:len(good)-1],
		"more":                 good + "x",
	} {
		if c, err := new(Lender).Change([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

func BenchmarkChange(b *testing.B) {
	var lines [][]byte
	size := 0
	for i, r := range benchmarkRecords(1000) {
		line := fmt.Appendf(nil, `{"seq":%d,"record_id":%q,"record":`, i+1, r.ID)
		line = AppendV1JSON(line, &r, V1Extra{Origin: record.Origin{Agent: "a", Type: "slurm", Label: "b"}, Seq: uint64(i + 1), Received: r.Stop, Changed: r.Stop})
		lines = append(lines, append(line, `,"supersedes":null}`...))
		size += len(lines[i])
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var d Lender
	for b.Loop() {
		for _, line := range lines {
			d.Reset()
			if _, err := d.Change(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func FuzzChange(f *testing.F) {
	f.Add([]byte(`{"seq":7,"record_id":"a","record":null,"supersedes":{"seq":6,"stop_time":` + someTime + `}}`))
	f.Add([]byte(`{"seq":7,"record_id":"a","record":` + body(`"a"`, `{"k":["v"]}`, someCores, someTime, someTime) + `,"supersedes":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := new(Lender).Change(b)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatal("accepted invalid JSON")
		}
		if bad := c.Record.Validate(); c.Shown && bad != nil {
			t.Fatal(bad)
		}
	})
}
