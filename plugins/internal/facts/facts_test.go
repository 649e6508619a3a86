package facts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestACensusThatIsTooLargeKeepsItsSums(t *testing.T) {
	c := Counts{}
	for i := range 100 {
		for q := range 10 {
			c.Add(Place{User: fmt.Sprintf("user%d", i), Queue: fmt.Sprintf("queue%d", q)}, int64(1-q%2), int64(q%2))
		}
	}
	for most, want := range map[int]int{1 << 20: 1000, 10_000: 100, 1000: 10, 100: 1} {
		rows, err := c.Rows(most)
		var running, pending int64
		for _, r := range rows {
			running, pending = running+r.Running, pending+r.Pending
		}
		if len(rows) != want || running != 500 || pending != 500 || (err == nil) != (want == 1000) {
			t.Errorf("in %d bytes: %d rows, %d running, %d pending, %v", most, len(rows), running, pending, err)
		}
	}
}

func TestADirectoryThatIsTooLargeIsSentWithoutNamesAndThenNotAtAll(t *testing.T) {
	var people []sdk.Person
	for i := range 100 {
		people = append(people, sdk.Person{User: fmt.Sprintf("user%04d", i), Groups: []string{"chem"}, Name: strings.Repeat("n", 50)})
	}
	whole, err := Fit(people, 10_000)
	if err != nil || len(whole) != 100 || whole[0].Name == "" {
		t.Errorf("%d, %v", len(whole), err)
	}
	bare, err := Fit(people, 5_000)
	if err == nil || len(bare) != 100 || bare[0].Name != "" || people[0].Name == "" {
		t.Errorf("%d, %v", len(bare), err)
	}
	none, err := Fit(people, 1_000)
	if err == nil || len(none) != 0 || !strings.Contains(remedy(err), "CSV") {
		t.Errorf("%d, %v", len(none), err)
	}
}

func remedy(err error) string {
	if r, ok := errors.AsType[*Remediable](err); ok {
		return r.Remedy
	}
	return ""
}
