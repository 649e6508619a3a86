package payload_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/payload"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func attribute(name string, v sdk.Value) sdk.Node { return sdk.Node{Name: name, Value: v} }

func block(name string, nodes ...sdk.Node) sdk.Node {
	return sdk.Node{Name: name, IsBlock: true, Children: nodes}
}

// read reads a config block.
func read(nodes ...sdk.Node) (*payload.Question, error) {
	cfg := sdk.NewConfig("test", block("config", nodes...))
	var s struct {
		Input string `hcl:"input,optional" default:"none" allowed:"usage changes none"`
		payload.Settings
	}
	_ = cfg.Decode(&s) // with what follows
	q := s.Question(cfg, s.Input)
	return q, cfg.Err()
}

func question(t *testing.T, nodes ...sdk.Node) *payload.Question {
	t.Helper()
	q, err := read(nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestWhatIsWrongWithTheConfigurationIsTold(t *testing.T) {
	for want, nodes := range map[string][]sdk.Node{
		"usage needs a block":         {attribute("input", sdk.String("usage"))},
		"says no time":                {attribute("input", sdk.String("usage")), block("usage")},
		`is for input = "usage"`:      {block("usage", attribute("window", sdk.String("today")))},
		"must be between 1 and 10000": {attribute("batch", sdk.Int(0))},
		`did you mean "changes"?`:     {attribute("input", sdk.String("change"))},
		`did you mean "skip_empty"`:   {attribute("skip_emty", sdk.Bool(true))},
	} {
		if _, err := read(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestUsageIsHandedOverRowByRow(t *testing.T) {
	q := question(t, attribute("input", sdk.String("usage")), block("usage",
		attribute("window", sdk.String("last-month")), attribute("by", sdk.Strings("group_id", "site_id")),
		attribute("measure", sdk.Strings("Cores")), attribute("where", sdk.StringMap(map[string]string{"site_id": "a"}))))
	rows := `{"group":{"group_id":"g"},"others":0,"bucket":null,"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z","measures":{"Cores":123456789012345678901.5}}` + "\n"
	data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.String(); got != "/v1/usage?by=group_id%2Csite_id&measure=Cores&where%5Bsite_id%5D=a&window=last-month" {
			t.Error(got)
		}
		fmt.Fprint(w, `{"about":{}}`+"\n"+rows)
	}))
	start := sdk.PlanStart{Now: time.Unix(1, 0), Since: time.Unix(0, 500), Arguments: map[string]string{"x": "y"}}
	h, err := q.Make(t.Context(), start, data)
	if err != nil || len(h.Documents) != 1 || h.State != nil {
		t.Fatal(h, err)
	}
	want := `{"format":1,"now":"1970-01-01T00:00:01Z","since":"1970-01-01T00:00:00.0000005Z","arguments":{"x":"y"},"usage":[{"group":{"group_id":"g"},"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z","measures":{"Cores":123456789012345678901.5}}]}`
	if got := string(h.Documents[0].Text); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rows = ""
	if h, err := q.Make(t.Context(), start, data); err != nil || len(h.Documents) != 0 || len(h.Notes) != 1 {
		t.Error(h, err)
	}
}

func TestWithoutAQuestionTheTimeIsHandedOver(t *testing.T) {
	h, err := question(t).Make(t.Context(), sdk.PlanStart{Now: time.Unix(1, 0)}, nil)
	if want := `{"format":1,"now":"1970-01-01T00:00:01Z","since":null}`; err != nil || string(h.Documents[0].Text) != want {
		t.Error(h, err)
	}
}

// feed answers /v1/changes for changes 1 to last, each of some bytes.
func feed(t *testing.T, last, bytes int) *sdk.Data {
	return sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("after"), "0"))
		if err != nil || r.URL.Path != "/v1/changes" {
			t.Error(r.URL, err)
		}
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			t.Error(r.URL, err)
		}
		var rows []string
		for seq := after + 1; seq <= min(after+limit, last); seq++ {
			rows = append(rows, fmt.Sprintf(`{"seq":%d,"record_id":"r%d","record":{"x":"<%s"}}`, seq, seq, strings.Repeat("x", bytes)))
		}
		fmt.Fprintf(w, `{"changes":[%s],"last":%d}`, strings.Join(rows, ","), min(after+limit, last))
	}))
}

// made are the numbers of the changes of a delivery, which must be well formed.
func made(t *testing.T, h payload.Delivery) (numbers []int) {
	t.Helper()
	for _, d := range h.Documents {
		var text struct {
			Format  int
			Changes []struct{ Seq int }
		}
		if err := json.Unmarshal(d.Text, &text); err != nil || text.Format != payload.Format || len(d.Text) > sdk.MaxPayload {
			t.Fatal(err, text.Format, len(d.Text))
		}
		for _, c := range text.Changes {
			numbers = append(numbers, c.Seq)
		}
	}
	return numbers
}

func TestChangesGoOnWhereTheLastRunEnded(t *testing.T) {
	q := question(t, attribute("input", sdk.String("changes")), attribute("batch", sdk.Int(2)))
	h, err := q.Make(t.Context(), sdk.PlanStart{State: []byte("7")}, feed(t, 12, 1))
	if got := fmt.Sprint(made(t, h)); err != nil || got != "[8 9 10 11 12]" || string(h.State) != "12" || len(h.Documents) != 3 {
		t.Errorf("%s: %+v, %v", got, h, err)
	}
	if d := h.Documents[2]; d.Part != "changes=12-12" || d.What != "1 changes, up to number 12" {
		t.Errorf("%+v", d)
	}
	h, err = q.Make(t.Context(), sdk.PlanStart{State: h.State}, feed(t, 12, 1))
	if err != nil || len(h.Documents) != 0 || string(h.State) != "12" {
		t.Errorf("%+v, %v", h, err)
	}
	h, err = q.Make(t.Context(), sdk.PlanStart{State: []byte("12"), Arguments: map[string]string{"after": "10"}}, feed(t, 12, 1))
	if got := fmt.Sprint(made(t, h)); err != nil || got != "[11 12]" {
		t.Error(got, err)
	}
	if _, err = q.Make(t.Context(), sdk.PlanStart{Arguments: map[string]string{"after": "x"}}, feed(t, 12, 1)); err == nil {
		t.Error("a position that is no number is taken")
	}
}

func TestNothingIsHandedOverOnlyWhenAskedFor(t *testing.T) {
	q := question(t, attribute("input", sdk.String("changes")), attribute("skip_empty", sdk.Bool(false)))
	h, err := q.Make(t.Context(), sdk.PlanStart{State: []byte("12")}, feed(t, 12, 1))
	if err != nil || len(h.Documents) != 1 || string(h.State) != "12" {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestALongBacklogIsHandedOverInBoundedRunsWithoutAHole(t *testing.T) {
	q := question(t, attribute("input", sdk.String("changes")), attribute("batch", sdk.Int(1)))
	var numbers []int
	var state []byte
	for run := range 3 {
		h, err := q.Make(t.Context(), sdk.PlanStart{State: state}, feed(t, 250, 1))
		if err != nil || len(h.Documents) > 100 {
			t.Fatal(len(h.Documents), err)
		}
		if rest := run < 2; rest != (len(h.Notes) == 1) {
			t.Errorf("run %d: %v", run, h.Notes)
		}
		numbers, state = append(numbers, made(t, h)...), h.State
	}
	for i, n := range numbers {
		if n != i+1 {
			t.Fatal(numbers)
		}
	}
	if len(numbers) != 250 {
		t.Errorf("%d changes", len(numbers))
	}
}

func TestABatchThatIsTooLargeIsHalved(t *testing.T) {
	q := question(t, attribute("input", sdk.String("changes")), attribute("batch", sdk.Int(2)))
	h, err := q.Make(t.Context(), sdk.PlanStart{}, feed(t, 2, 9<<19))
	if got := fmt.Sprint(made(t, h)); err != nil || got != "[1 2]" || len(h.Documents) != 2 {
		t.Error(got, len(h.Documents), err)
	}
}

func TestAPlanHasAnEffectForEachDocument(t *testing.T) {
	h := payload.Delivery{Documents: []payload.Document{{Text: []byte("{}"), What: "3 changes", Part: "changes=1-3"}, {Text: []byte("{}"), Part: "changes=4-5"}}, State: []byte("5")}
	p := h.Plan("run", "/bin/x", func(what string) string { return "do " + what })
	if len(p.Effects) != 2 || p.Effects[0].Name != "run changes=1-3" || p.Effects[0].Summary != "do 3 changes" || p.Effects[1].Show != "/bin/x\n{}" || string(p.State) != "5" {
		t.Errorf("%+v", p)
	}
}

func TestAnAnswerThatIsNoJSONIsAnError(t *testing.T) {
	q := question(t, attribute("input", sdk.String("changes")))
	data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }))
	if _, err := q.Make(context.Background(), sdk.PlanStart{}, data); err == nil || !strings.Contains(err.Error(), "the changes: ") {
		t.Error(err)
	}
}
