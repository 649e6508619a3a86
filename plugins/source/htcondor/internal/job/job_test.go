package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// entries are those of a file of testdata.
func entries(t testing.TB, name string) (out []string) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	entry := ""
	for line := range strings.Lines(string(text)) {
		entry += line
		if strings.HasPrefix(line, classad.Banner) {
			out, entry = append(out, entry), ""
		}
	}
	return out
}

// told is what the ads of a file tell of their runs.
func told(t *testing.T, name string) (out []string) {
	t.Helper()
	j, ad, plan := New(), new(classad.Ad), NewPlan(func(string) bool { return true }).Lend()
	for _, text := range entries(t, name) {
		e := classad.ReadEntry(text)
		if err := ad.Read(e.Text); err != nil {
			t.Fatal(err)
		}
		err := j.Load(ad, e.Kind != "")
		if errors.Is(err, ErrNeverRan) {
			out = append(out, j.GlobalID+" never ran")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		values, unread := plan.Values(j)
		if len(unread) > 0 {
			t.Fatal(unread)
		}
		line := fmt.Sprintf("%s %d+%d", j.ID(), j.Start.Unix(), int(j.End.Sub(j.Start).Seconds()))
		for i, a := range Attributes() {
			switch a.Name {
			case "state", "universe", "gpu_device", "host":
				line += " " + values[i].Str()
			case "cores", "memory_mb", "gpus", "exit_code", "exit_signal", "cpu_seconds":
				if values[i].IsNull() {
					line += " -"
				} else {
					line += fmt.Sprint(" ", values[i].Int())
				}
			}
		}
		out = append(out, line)
	}
	return out
}

func TestRuns_OfRealHistories_AreAsTheyWere(t *testing.T) {
	for _, name := range []string{"history-23.9.6", "epochs-23.9.6", "kinds-history-23.9.6", "kinds-epochs-23.9.6"} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile("testdata/" + name + ".runs")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"), told(t, name)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Of ads in any order and with any of the attributes left out or unreadable, a list that was
// taken back has the values that a new one has.
func TestLender_ListsThatWereTakenBack_HaveNothingOfOtherRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	texts := slices.Concat(entries(t, "kinds-history-23.9.6"), entries(t, "kinds-epochs-23.9.6"))
	for range 6 {
		wanted := random.IntN(3)
		plan := NewPlan(func(string) bool { return wanted == 0 || random.IntN(1+wanted) == 0 })
		lender, unlent, j, ad := plan.Lend(), plan.Lend(), New(), new(classad.Ad)
		for range 4 {
			var got, want [][]sdk.Value
			for range random.IntN(2 * lentTogether) {
				e := classad.ReadEntry(texts[random.IntN(len(texts))])
				if err := ad.Read(e.Text); err != nil {
					t.Fatal(err)
				}
				random.Shuffle(len(ad.Attributes), func(a, b int) {
					ad.Attributes[a], ad.Attributes[b] = ad.Attributes[b], ad.Attributes[a]
				})
				ad.Attributes = ad.Attributes[:len(ad.Attributes)-random.IntN(len(ad.Attributes))]
				ad.Attributes[random.IntN(len(ad.Attributes))].Text = "{ odd"
				_ = j.Load(ad, e.Kind != "") // the error: it need not be a run
				lent, unread := lender.Values(j)
				kept, unreadToo := unlent.Values(j)
				if !slices.Equal(unread, unreadToo) {
					t.Fatalf("%v, want %v", unread, unreadToo)
				}
				got, want = append(got, lent), append(want, kept)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatal(cmp.Diff(want, got, cmp.AllowUnexported(sdk.Value{})))
			}
			lender.TakeBack()
		}
	}
}
