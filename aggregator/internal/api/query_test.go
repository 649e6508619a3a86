package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestQueriesOfAuditorsClientsAreUnderstood(t *testing.T) {
	at := func(s string) int64 {
		v, err := parseInstant(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	cases := []struct {
		raw  string
		want recordsQuery
	}{
		{"", recordsQuery{Limit: -1}},
		{"&&limit=", recordsQuery{Limit: -1}},
		{"start_time[gte]=2022-10-03T09%3A47%3A00%2B00%3A00", recordsQuery{Start: []condition{{opGte, at("2022-10-03T09:47:00Z")}}, Limit: -1}},
		{
			"runtime[gt]=0&stop_time[gte]=2022-10-03T00:00:00Z&stop_time[lt]=2022-10-04T00:00:00%2b02:00&meta[site_id][c][0]=hpc",
			recordsQuery{
				Runtime: []condition{{opGt, 0}},
				Stop:    []condition{{opGte, at("2022-10-03T00:00:00Z")}, {opLt, at("2022-10-03T22:00:00Z")}},
				Meta:    []metaCondition{{Key: "site_id", Contains: []string{"hpc"}}}, Limit: -1,
			},
		},
		{"component[cpu][equals]=4", recordsQuery{Components: []componentCondition{{"cpu", condition{opEquals, 4}}}, Limit: -1}},
		{"component[Cores][gt]=3000000000", recordsQuery{Components: []componentCondition{{"Cores", condition{opGt, 3000000000}}}, Limit: -1}},
		{"sort_by[desc]=start_time&limit=4", recordsQuery{SortBy: "start_time", Descending: true, Limit: 4}},
		{"sort_by[desc]=start_time&sort_by[asc]=runtime", recordsQuery{SortBy: "runtime", Limit: -1}},
		{"record_id=r3&limit=0", recordsQuery{RecordID: "r3"}},
		{"record_id=a+b%2Fc", recordsQuery{RecordID: "a b/c", Limit: -1}},
		{
			"meta[group_id][c][1]=b&meta[group_id][c][0]=a&meta[group_id][dnc][0]=c",
			recordsQuery{Meta: []metaCondition{{Key: "group_id", Contains: []string{"a", "b"}, Without: []string{"c"}}}, Limit: -1},
		},
		{"meta[a][c][]=1&meta[a][c][]=2", recordsQuery{Meta: []metaCondition{{Key: "a", Contains: []string{"1", "2"}}}, Limit: -1}},
		{"meta[a][any][0]=1&meta[a][any][1]=2,3", recordsQuery{Meta: []metaCondition{{Key: "a", Any: []string{"1", "2,3"}}}, Limit: -1}},
		{"meta[a][c]=1", recordsQuery{Meta: []metaCondition{{Key: "a", Contains: []string{"1"}}}, Limit: -1}},
		{"meta%5Bsite%20id%5D%5Bc%5D%5B0%5D=x", recordsQuery{Meta: []metaCondition{{Key: "site id", Contains: []string{"x"}}}, Limit: -1}},
		{"meta[a%5Bb][c][0]=x", recordsQuery{Meta: []metaCondition{{Key: "a[b", Contains: []string{"x"}}}, Limit: -1}},
		{"start_time[gt]=2022-10-03T00:00:00Z&start_time[gte]=2022-10-04T00:00:00Z", recordsQuery{Start: []condition{{opGt, at("2022-10-03T00:00:00Z")}, {opGte, at("2022-10-04T00:00:00Z")}}, Limit: -1}},
	}
	for _, c := range cases {
		t.Run(c.raw, func(t *testing.T) {
			got, err := parseQuery(c.raw, nil)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(componentCondition{}), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestQueriesThatAreWrongSayWhat(t *testing.T) {
	cases := []struct{ raw, want string }{
		{"foo=1", "unknown field `foo`, expected one of"},
		{"start_time=2022-10-03T00:00:00Z", "takes an operator"},
		{"start_time[ge]=2022-10-03T00:00:00Z", "unknown variant `ge`"},
		{"start_time[gte]=2022-10-03T09:47:00+00:00", "RFC 3339"},
		{"start_time[gte]=yesterday", "RFC 3339"},
		{"runtime[gt]=-1", "Parsing '-1' failed."},
		{"limit=-1", "Parsing '-1' failed."},
		{"limit=1&limit=2", `Multiple values for one key: "limit"`},
		{"runtime[gt]=1&runtime[gt]=2", `Multiple values for one key: "runtime[gt]"`},
		{"meta[a][c][0]=x&meta[a][c][0]=y", "Multiple values for one key"},
		{"meta[a][c][0]=", "empty"},
		{"meta[a][contains][0]=x", "dnc"},
		{"meta[a]=x", "dnc"},
		{"component[a]=1", "component"},
		{"component[a][gt]=1.5", "Parsing '1.5' failed."},
		{"sort_by=start_time", "asc or desc"},
		{"sort_by[asc]=updated_at", "unknown variant `updated_at`"},
		{"record_id[a]=x", "plain value"},
		{"meta[a][c][0=x", "do not match"},
		{"record_id=%zz", "percent-encoded"},
		{"meta[1][2][3][4][5][6][7]=x", "more than"},
	}
	for _, c := range cases {
		if _, err := parseQuery(c.raw, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.raw, err, c.want)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{"meta[a][c][0]=x&limit=3", "start_time[gte]=2022-10-03T00:00:00Z", "a%5Bb%5D=%zz", "[[[]]]", "meta[][c][]=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := parseQuery(s, nil); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
