package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestEveryReportOfTheCatalogueSaysWhatItIsForAndWhatItTakes(t *testing.T) {
	name := regexp.MustCompile(`^[a-z_]+$`)
	seen := map[string]bool{}
	for _, e := range Catalogue() {
		if !name.MatchString(e.Name) || seen[e.Name] || e.Title == "" || !strings.HasSuffix(e.About, ".") || e.make == nil {
			t.Errorf("%s: %+v", e.Name, e)
		}
		seen[e.Name] = true
		params := map[string]bool{}
		for _, p := range e.Parameters {
			if !name.MatchString(p.Name) || params[p.Name] || p.Title == "" || !strings.HasSuffix(p.About, ".") || p.Most < 1 || p.Default == nil || p.Words == nil {
				t.Errorf("%s: %+v", e.Name, p)
			}
			params[p.Name] = true
			if p.Kind == ParamChoice && (len(p.Default) != 1 || !slices.Contains(p.Words, p.Default[0])) {
				t.Errorf("%s: the default of %s is none of its words", e.Name, p.Name)
			}
			for _, reserved := range []string{"report", "format", "download", "consistency", "max_age"} {
				if p.Name == reserved {
					t.Errorf("%s: %s has a meaning for all reports", e.Name, p.Name)
				}
			}
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}
}

func TestAReportByNameIsTheOneOfItsOptions(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		want  func() (*Document, error)
	}{
		"usage": {"period=2026-10&period=this-year&by=&top=0", func() (*Document, error) {
			return Usage(t.Context(), v1.API{Caller: world()}, UsageOptions{Periods: []string{"2026-10", "this-year"}, Zone: "UTC", Now: now()})
		}},
		"subscription": {"period=2026-10&credit=spread", func() (*Document, error) {
			return Subscription(t.Context(), v1.API{Caller: world()}, SubscriptionOptions{Periods: []string{"2026-10"}, Zone: "UTC", Now: now()})
		}},
		"utilization": {"period=2026-10", func() (*Document, error) {
			return Utilization(t.Context(), v1.API{Caller: world()}, UtilizationOptions{Periods: []string{"2026-10"}, Zone: "UTC", Now: now()})
		}},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		var got, want bytes.Buffer
		for out, build := range map[*bytes.Buffer]func() (*Document, error){&want: c.want, &got: func() (*Document, error) { return Make(t.Context(), v1.API{Caller: world()}, name, query, now()) }} {
			d, err := build()
			if err != nil {
				t.Fatal(name, err)
			}
			if err := d.WriteJSON(out); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want.String() {
			t.Errorf("%s:\n%s\nwant\n%s", name, &got, &want)
		}
	}
}

// asked remembers the questions.
type asked []url.Values

func (a *asked) Call(_ context.Context, _, _ string, query url.Values, _, _ any) error {
	*a = append(*a, query)
	return errors.New("enough")
}

func (a *asked) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return pageOf(ctx, a, path, query)
}

func TestWhatAReportIsToldReachesTheQuestion(t *testing.T) {
	var a asked
	query, err := url.ParseQuery("period=2026&by=user_id&measure=Cores,GPUs&measure=people&where=group_id=a%3Db&where[site_id]=x&top=7&order=GPUs&zone=Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(t.Context(), v1.API{Caller: &a}, "usage", query, now()); err == nil || len(a) != 1 {
		t.Fatal(err, a)
	}
	for key, want := range map[string]string{
		"window": "2026", "by": "user_id", "measure": "Cores,GPUs,people", "where[group_id]": "a=b", "where[site_id]": "x", "top": "7", "order": "GPUs", "zone": "Europe/Berlin",
	} {
		if got := a[0].Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestWhatAReportDoesNotTakeIsRefusedWithANearName(t *testing.T) {
	for _, c := range []struct {
		name, query string
		is          error
		says        string
	}{
		{"usgae", "", ErrUnknown, `did you mean "usage"?`},
		{"bill of fare", "", ErrUnknown, "there are usage, subscription"},
		{"usage", "perod=2026", ErrQuery, `did you mean "period"?`},
		{"usage", "period=2024&period=2025&period=2026", ErrQuery, "at most 2"},
		{"usage", "top=many", ErrQuery, "want a number"},
		{"usage", "top=-1", ErrQuery, "want a number"},
		{"usage", "top=1e3", ErrQuery, "want a number"},
		{"usage", "where=atlas", ErrQuery, "KEY=VALUE"},
		{"usage", "where=a=b&where[a]=c", ErrQuery, "more than once"},
		{"usage", "period[x]=2026", ErrQuery, "period[x]"},
		{"subscription", "credit=sprad", ErrQuery, `did you mean "spread"?`},
		{"statement", "of=user_id=alice,bob", ErrQuery, "a statement is of one, and user_id is \"alice,bob\""},
		{"statement", "of=user_id=", ErrQuery, "user_id has no value"},
		{"statement", "of=group_id=cms&top=101", ErrQuery, "top is 101; want a number from 1 to 100"},
		{"statement", "of=group_id=cms&top=0", ErrQuery, "top is 0"},
		{"statement", "of=group_id=cms&memory_per_gb=0", ErrQuery, "memory_per_gb is 0"},
		{"efficiency", "memory_per_gb=0", ErrQuery, "memory_per_gb is 0"},
		{"efficiency", "pue=0.5", ErrQuery, "pue is 0.5; want a number from 1 to 100"},
		{"efficiency", "carbon_per_kwh=-1", ErrQuery, "want a number, 0 or more"},
		{"efficiency", "kwh_per_core_hour=NaN", ErrQuery, "want a number, 0 or more"},
		{"utilization", "by=user_id", ErrQuery, "knows no"},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Make(t.Context(), v1.API{Caller: world()}, c.name, query, now())
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s?%s: %v, want %q", c.name, c.query, err, c.says)
		}
	}
}

func TestTheTableByDayHasABoundAndSaysWhatIsLeftOut(t *testing.T) {
	text := `{` + windowOfOctober + `,"by":["user_id"],"labels":["2026-10-01","2026-10-02"],"groups":[{"values":["ann"]},{"values":["bob"]}],
"measures":[{"name":"records","kind":"count","values":[1,2,3,0]}]}`
	var a usageAnswer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]string{3: "", 2: "The table by day has the first 2 lines, up to 2026-10-01; 1 more are not in it."} {
		s := &summary{o: SummaryOptions{By: []string{"user_id"}, Bucket: "day"}, periods: []Period{{Name: "October 2026"}}, answers: []*usageAnswer{&a}}
		rows, notes := s.daily(most).Rows, strings.Join(s.notes, " ")
		if len(rows) != most || !strings.HasPrefix(notes, want) || (want == "") != (notes == "") {
			t.Errorf("%d: %v %s", most, rows, notes)
		}
	}
	e, err := Find("summary")
	if err != nil || e.Param("top").Default[0] != "100" {
		t.Error("a summary that is asked for by name has all lines", err)
	}
}

func TestWhoNeverHadARecordIsNamed(t *testing.T) {
	w := script{
		"/v1/usage 2000-01-01 by group_id of records":    `{"records":2,"groups":[{"values":["cms"]}],"complete":{}}`,
		"/v1/usage 2000-01-01 by  of records each month": `{"records":0,"labels":[],"complete":{}}`,
	}
	n := absent{of: "report summary", where: map[string]string{"group_id": "cms"}, periods: []string{"2031"}}
	if err := n.all(t.Context(), v1.API{Caller: w}, []*usageAnswer{{}}); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "no record of group_id cms ran in 2031, nor in any other month") {
		t.Error(err)
	}
}
