package v1_test

import (
	"context"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestDecodeQuery_OfAuditorsClients_IsUnderstood(t *testing.T) {
	at := func(text string) v1.Time {
		at, err := record.ParseTime(text)
		if err != nil {
			t.Fatal(err)
		}
		return v1.Stamp(at)
	}
	cases := []struct {
		raw  string
		want v1.ListRecordsQuery
	}{
		{"", v1.ListRecordsQuery{}},
		{"&&limit=", v1.ListRecordsQuery{}},
		{"start_time[gte]=2022-10-03T09%3A47%3A00%2B00%3A00", v1.ListRecordsQuery{StartTime: v1.TimeTest{Gte: at("2022-10-03T09:47:00Z")}}},
		{
			"runtime[gt]=0&stop_time[gte]=2022-10-03T00:00:00Z&stop_time[lt]=2022-10-04T00:00:00%2b02:00&meta[site_id][c][0]=hpc",
			v1.ListRecordsQuery{
				Runtime:  v1.NumberTest{Gt: new(0)},
				StopTime: v1.TimeTest{Gte: at("2022-10-03T00:00:00Z"), Lt: at("2022-10-03T22:00:00Z")},
				Meta:     map[string]v1.MetaTest{"site_id": {C: []string{"hpc"}}},
			},
		},
		{"component[cpu][equals]=4", v1.ListRecordsQuery{Component: map[string]v1.NumberTest{"cpu": {Equals: new(4)}}}},
		{"component[Cores][gt]=3000000000&component[Cores][lt]=9", v1.ListRecordsQuery{Component: map[string]v1.NumberTest{"Cores": {Gt: new(3000000000), Lt: new(9)}}}},
		{"sort_by[desc]=start_time&limit=4", v1.ListRecordsQuery{SortBy: v1.SortBy{Desc: "start_time"}, Limit: 4}},
		{"sort_by[desc]=start_time&sort_by[asc]=runtime", v1.ListRecordsQuery{SortBy: v1.SortBy{Asc: "runtime", Desc: "start_time"}}},
		{"record_id=a+b%2Fc", v1.ListRecordsQuery{RecordID: "a b/c"}},
		{
			"meta[group_id][c][1]=b&meta[group_id][c][0]=a&meta[group_id][dnc][0]=c",
			v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{"group_id": {C: []string{"b", "a"}, Dnc: []string{"c"}}}},
		},
		{"meta[a][c][]=1&meta[a][c][]=2&meta[b][c][]=2", v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{"a": {C: []string{"1", "2"}}, "b": {C: []string{"2"}}}}},
		{"meta[a][any][0]=1&meta[a][any][1]=2,3", v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{"a": {Any: []string{"1", "2,3"}}}}},
		{"meta[a][c]=1", v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{"a": {C: []string{"1"}}}}},
		{"meta%5Bsite%20id%5D%5Bc%5D%5B0%5D=x", v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{"site id": {C: []string{"x"}}}}},
		{"meta[a%5Bb][c][0]=x", v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{"a[b": {C: []string{"x"}}}}},
		{"open=false&after=18446744073709551615&max_age=1s", v1.ListRecordsQuery{Open: new(false), After: 1<<64 - 1, Reading: v1.Reading{MaxAge: "1s"}}},
	}
	for _, c := range cases {
		var got v1.ListRecordsQuery
		if err := v1.DecodeQuery(c.raw, &got); err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v\n%s", c.raw, err, cmp.Diff(c.want, got))
		}
	}
}

func TestDecodeQuery_ListsAndConditions_AreUnderstood(t *testing.T) {
	var got v1.UsageQuery
	err := v1.DecodeQuery(`by=a,b&by=c\,d&by=&component=Cores&component[GPUs][gte]=1&where[x%5D]=&where[p]=1\,2&where%5Ba%5D%5Bb%5D=c&top=3`, &got)
	want := v1.UsageQuery{By: `a,b,c\,d`, Components: "Cores", Component: map[string]v1.NumberTest{"GPUs": {Gte: new(1)}}, Where: map[string]string{"x]": "", "p": `1\,2`, "a][b": "c"}, Top: 3}
	if err != nil || !cmp.Equal(got, want) {
		t.Error(err, cmp.Diff(want, got))
	}
	var report v1.ReportQuery
	if err := v1.DecodeQuery("period=2025&period=2026", &report); err != nil || !cmp.Equal(report.Period, []string{"2025", "2026"}) {
		t.Errorf("%v, %v", report.Period, err)
	}
}

func TestDecodeQuery_Wrong_SaysWhat(t *testing.T) {
	cases := []struct{ raw, want string }{
		{"foo=1", "unknown field `foo`, expected one of `record_id`, `start_time`, "},
		{"start_time=2022-10-03T00:00:00Z", "`start_time` takes brackets, as in start_time[gt]=…"},
		{"start_time[ge]=2022-10-03T00:00:00Z", "unknown field `start_time[ge]`, expected one of `start_time[gt]`, `start_time[gte]`, "},
		{"start_time[gte]=2022-10-03T09:47:00+00:00", "RFC 3339"},
		{"start_time[gte]=yesterday", "start_time[gte]: "},
		{"start_time[lt]=0001-01-01T00:00:00Z", "start_time[lt]: the first instant of the year 1"},
		{"runtime[gt]=-1", `runtime[gt] is "-1", want a whole number of 0 or more`},
		{"limit=0", `limit is "0", want a whole number of 1 or more`},
		{"limit=9223372036854775808", "limit is"},
		{"after=18446744073709551616", "after is"},
		{"after=", `after is "", want a whole number of 0 or more`},
		{"limit=1&limit=2", "limit given more than once"},
		{"runtime[gt]=1&runtime[gt]=2", "runtime[gt] given more than once"},
		{"runtime[gt]=&runtime[gt]=2", "runtime[gt] given more than once"},
		{"meta[a][c][0]=x&meta[a][c][0]=y", "meta[a][c][0] given more than once"},
		{"meta[a][c][0]=", "empty"},
		{"meta[a][c][x]=1", "want the index of a list"},
		{"meta[a][c][0][1]=1", "`meta[a][c]` is a list, as in meta[a][c][0]=…"},
		{"meta[a][contains][0]=x", "`meta[a][dnc]`"},
		{"meta[a]=x", "`meta[a]` takes brackets, as in meta[a][c]=…"},
		{"component[a]=1", "`component[a]` takes brackets, as in component[a][gt]=…"},
		{"component=1", "`component` takes brackets, as in component[KEY][gt]=…"},
		{"component[a][gt]=1.5", `component[a][gt] is "1.5"`},
		{"sort_by=start_time", "`sort_by` takes brackets, as in sort_by[asc]=…"},
		{"sort_by[asc]=updated_at", `sort_by[asc] is "updated_at", want start_time, stop_time, runtime or record_id`},
		{"record_id[a]=x", "`record_id` takes a plain value, as in record_id=…"},
		{"open=1", `open is "1", want true or false`},
		{"meta[a][c][0=x", "do not match"},
		{"record_id=%zz", "percent-encoded"},
		{"meta[1][2][3][4][5][6][7]=x", "more than 5 brackets"},
	}
	for _, c := range cases {
		if err := v1.DecodeQuery(c.raw, &v1.ListRecordsQuery{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.raw, err, c.want)
		}
	}
	for _, c := range []struct{ raw, want string }{
		{"where[a]=1&where[a]=2", "where[a] given more than once"},
		{"where=a", "`where` takes brackets, as in where[KEY]=…"},
		{"credit=x", `credit is "x", want spread or stop`},
		{"foo[a]=x", "`where[KEY]`"},
	} {
		if err := v1.DecodeQuery(c.raw, &v1.UsageQuery{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.raw, err, c.want)
		}
	}
	if err := v1.DecodeQuery("limit=10001", &v1.ChangesQuery{}); err == nil || err.Error() != `limit is "10001", want a whole number from 1 to 10000` {
		t.Error(err)
	}
}

// asker keeps the query of the last question.
type asker struct {
	v1.Caller

	query url.Values
}

func (a *asker) Call(_ context.Context, _, _ string, query url.Values, _, _ any) error {
	a.query = query
	return nil
}

// What a client asks is what a server decodes.
func FuzzDecodeQuery(f *testing.F) {
	for _, s := range []string{
		"meta[a][c][0]=x&limit=3", "start_time[gte]=2022-10-03T00:00:00Z", "a%5Bb%5D=%zz", "[[[]]]", "meta[][c][]=1", "by=a&by=b&component=c&component[d][gt]=3",
		"where[a%5D%5Bb]=", "open=true&top=4", `by=a\\&by=b`, "component[][gt]", "component[Cores][gt]=&component[Cores][lt]=3",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var in, again v1.UsageQuery
		if err := v1.DecodeQuery(raw, &in); err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		a := &asker{}
		if _, err := (v1.API{Caller: a}).Usage(t.Context(), &in); err != nil {
			t.Fatal(err)
		}
		if err := v1.DecodeQuery(a.query.Encode(), &again); err != nil || !reflect.DeepEqual(in, again) {
			t.Errorf("%s is asked as %s: %v\n%s", raw, a.query.Encode(), err, cmp.Diff(in, again))
		}
	})
}
