package plugintest

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Garbage is a text that stands in logs and databases where a number, a time or an amount
// should be, and is none of them. It has no newline, colon, bar or quote.
func Garbage(r *rand.Rand) string {
	number := strconv.FormatInt(1+r.Int64N(1<<r.IntN(62)), 10)
	return []string{
		number + "?", "?" + number, "-" + number + "x", number + "." + number + "." + number, number + "e999", number + "Q",
		"18446744073709551616" + number, "17592186044415" + number + "P", "213503982334601-07", "0x" + number + "z", number + " " + number + "x",
		"\x01" + number, number + "\xff", "NaN%", "#####", "(nil)", "++" + number,
	}[r.IntN(17)]
}

// CollectFresh returns what a source says of itself, and what it collects when it begins with
// a configuration.
func CollectFresh(t testing.TB, source func() sdk.Source, r *bursarv1.ConfigureRequest) (*bursarv1.DescribeResponse, *Collected) {
	t.Helper()
	client := Serve(t, source)
	configured, err := client.Configure(t.Context(), r)
	if err != nil || len(configured.GetDiagnostics()) > 0 {
		t.Fatal(err, configured.GetDiagnostics())
	}
	d, err := client.Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&Daemon{Client: client}).Collect(t.Context(), sdk.Start{})
	if err != nil {
		t.Fatal(err)
	}
	return d, got
}

// CheckUnread compares what a source makes of sound input and of the same input in which
// fields hold [Garbage] that neither the name nor the start nor the stop of a run needs.
// Every run must still come, with the values that it had, or null where the job names the
// attribute as unread; its record under the default mapping has the id, start and stop that
// it had, and no other components. Where a component that the default mapping cannot leave
// out depends on such an attribute, the mapping must fail on that. It returns how many
// values were named.
func CheckUnread(t testing.TB, d *bursarv1.DescribeResponse, sound, broken *Collected) (named int) {
	t.Helper()
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(sound.Refused(), broken.Refused(), protocmp.Transform()); diff != "" {
		t.Errorf("refused (-sound +broken):\n%s", diff)
	}
	jobs := map[string]*bursarv1.Job{}
	for _, j := range broken.Jobs() {
		jobs[j.GetRun()] = j
	}
	whole := map[string]*bursarv1.Job{}
	for _, j := range sound.Jobs() {
		whole[j.GetRun()] = j
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(whole)), slices.Sorted(maps.Keys(jobs))); diff != "" {
		t.Errorf("runs (-sound +broken):\n%s", diff)
		return 0
	}
	for run, j := range whole {
		named += len(jobs[run].GetUnread())
		checkValues(t, d.GetAttributes(), j, jobs[run])
		checkRecord(t, m, j, jobs[run])
	}
	return named
}

// checkValues fails where a value is another one, and not null and named.
func checkValues(t testing.TB, attributes []*bursarv1.Attribute, whole, broken *bursarv1.Job) {
	t.Helper()
	problems := map[string]string{}
	for _, u := range broken.GetUnread() {
		problems[u.GetAttribute()] = u.GetProblem()
	}
	for i, a := range attributes {
		before, after := whole.GetValues()[i], broken.GetValues()[i]
		raw := a.GetType() == bursarv1.Type_TYPE_STRING || a.GetType() == bursarv1.Type_TYPE_MAP || a.GetType() == bursarv1.Type_TYPE_LIST
		same := cmp.Equal(before, after, protocmp.Transform())
		switch problem, named := problems[a.GetName()]; {
		case named && (problem == "" || after.GetKind() != nil && !raw):
			t.Errorf("%s: %s is named as unread (%q) and is %v", whole.GetRun(), a.GetName(), problem, after)
		case !named && !raw && !same:
			t.Errorf("%s: %s is %v, was %v, and is not named as unread; named are %q", whole.GetRun(), a.GetName(), after, before, problems)
		}
	}
}

func checkRecord(t testing.TB, m *mapping.Mapper, whole, broken *bursarv1.Job) {
	t.Helper()
	want, kept, err := m.Map(whole)
	if err != nil || !kept {
		return // also without garbage it is none
	}
	got, keep, err := m.Map(broken)
	if e, ok := errors.AsType[*mapping.Error](err); ok && strings.HasPrefix(e.Part, `component "Cores"`) && len(broken.GetUnread()) > 0 {
		return
	}
	if err != nil || !keep {
		t.Errorf("%s: no record: %v; unread %v", whole.GetRun(), err, broken.GetUnread())
		return
	}
	if got.ID != want.ID || got.Start != want.Start || got.Stop != want.Stop {
		t.Errorf("%s: %s from %s to %s, was %s from %s to %s", whole.GetRun(), got.ID, got.Start, got.Stop, want.ID, want.Start, want.Stop)
	}
	for _, c := range got.Components {
		if !slices.ContainsFunc(want.Components, func(w record.Component) bool { return isWithin(c, w) }) {
			t.Errorf("%s: component %+v, was %+v", whole.GetRun(), c, want.Components)
		}
	}
	if len(got.Components) < len(want.Components) && len(broken.GetUnread()) == 0 {
		t.Errorf("%s: components %+v, were %+v, and nothing is named as unread", whole.GetRun(), got.Components, want.Components)
	}
}

// isWithin reports whether a component is another one, or that without some of its scores.
func isWithin(c, whole record.Component) bool {
	return c.Name == whole.Name && c.Amount == whole.Amount && c.Kind == whole.Kind &&
		!slices.ContainsFunc(c.Scores, func(s record.Score) bool { return !slices.Contains(whole.Scores, s) })
}
