package facts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Most bounds a fact in bytes: the daemon takes frames of up to 256 KiB.
const Most = 250 << 10

// Remediable is an error with a remedy, for people.
type Remediable struct {
	Err    error
	Remedy string
}

// Error is that of Err.
func (r *Remediable) Error() string { return r.Err.Error() }

// Unwrap returns the error itself.
func (r *Remediable) Unwrap() error { return r.Err }

// Digest tells two facts apart.
func Digest(fact any) string {
	text, err := json.Marshal(fact)
	if err != nil { // cannot be: texts and numbers
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Told are the digests of the facts that were sent last, in a checkpoint; "" for none.
type Told struct {
	Capacity  string `json:"capacity,omitempty"`
	Directory string `json:"directory,omitempty"`
}

// News is the capacity since at, which has changed since it was told last; nil where it has
// not.
func (t *Told) News(at time.Time, components []sdk.Amount) *sdk.Capacity {
	now := Digest(components)
	if now == t.Capacity {
		return nil
	}
	t.Capacity = now
	return &sdk.Capacity{From: at, Components: components}
}

// Amounts are amounts in the order of their names.
func Amounts(totals map[string]int64) []sdk.Amount {
	var list []sdk.Amount
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		list = append(list, sdk.Amount{Name: name, Amount: totals[name]})
	}
	return list
}

// Counts are jobs by user and queue.
type Counts map[Place]*sdk.CensusRow

// Place is a user and a queue.
type Place struct{ User, Queue string }

// Add counts jobs at a place.
func (c Counts) Add(p Place, running, pending int64) {
	row := c.rowAt(p)
	row.Running += running
	row.Pending += pending
}

func (c Counts) rowAt(p Place) *sdk.CensusRow {
	if c[p] == nil {
		c[p] = &sdk.CensusRow{User: p.User, Queue: p.Queue}
	}
	return c[p]
}

// foldPlaces counts together what has the same place after change.
func (c Counts) foldPlaces(change func(Place) Place) Counts {
	out := Counts{}
	for p, row := range c {
		out.Add(change(p), row.Running, row.Pending)
	}
	return out
}

// Rows returns the counts in at most so many bytes. When they are more, the queues
// of each user are counted together, and the users of each queue when that is not
// enough; the error says so. Sums stay right.
func (c Counts) Rows(most int) ([]sdk.CensusRow, error) {
	byUser := func(p Place) Place { return Place{User: p.User} }
	byQueue := func(p Place) Place { return Place{Queue: p.Queue} }
	all := func(Place) Place { return Place{} }
	if c.wireSize() <= most {
		return c.sortedRows(), nil
	}
	if users := c.foldPlaces(byUser); users.wireSize() <= most {
		return users.sortedRows(), tooLargeError("the queues of each user are counted together")
	}
	if queues := c.foldPlaces(byQueue); queues.wireSize() <= most {
		return queues.sortedRows(), tooLargeError("the users of each queue are counted together")
	}
	return c.foldPlaces(all).sortedRows(), tooLargeError("all jobs are counted together")
}

func tooLargeError(what string) error {
	return &Remediable{errors.New("it is too large for one frame: " + what), "leave it, or choose fewer jobs in the source's config block"}
}

// rowOverhead is what a row or a text takes on the wire beside texts, at most.
const rowOverhead = 32

func (c Counts) wireSize() (n int) {
	for p := range c {
		n += wireLen(p.User) + wireLen(p.Queue) + rowOverhead
	}
	return n
}

// wireLen is the length of s as it is sent: bytes that are no UTF-8 are replaced.
func wireLen(s string) int { return len(strings.ToValidUTF8(s, "\uFFFD")) }

func (c Counts) sortedRows() []sdk.CensusRow {
	out := make([]sdk.CensusRow, 0, len(c))
	for _, row := range c {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b sdk.CensusRow) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(a.Queue, b.Queue))
	})
	return out
}

// byCSV is the remedy for a directory that one frame does not hold.
const byCSV = "give people to the aggregator as a CSV file, and set directory = false in the source's config block"

// Fit returns people in at most so many bytes: without names when they are more,
// and none when that is not enough, since part of a directory would say that the
// others have left. The error says so.
func Fit(people []sdk.Person, most int) ([]sdk.Person, error) {
	if sizeOf(people) <= most {
		return people, nil
	}
	bare := slices.Clone(people)
	for i := range bare {
		bare[i].Name, bare[i].Address = "", ""
	}
	if sizeOf(bare) <= most {
		return bare, &Remediable{fmt.Errorf("the %d users are too many for one frame with their names, which are left out", len(people)),
			"set names = false in the source's config block, or " + byCSV}
	}
	return nil, &Remediable{fmt.Errorf("the %d users are too many for one frame; none are sent", len(people)), byCSV}
}

func sizeOf(people []sdk.Person) (n int) {
	const text = 6 // a tag and a length
	for _, p := range people {
		n += wireLen(p.User) + wireLen(p.Name) + wireLen(p.Address) + 4*text
		for _, g := range p.Groups {
			n += wireLen(g) + text
		}
	}
	return n
}
