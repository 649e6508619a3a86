package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Kind says of what kind an entry is.
type Kind string

// The kinds of entries.
const (
	Change  Kind = "change"  // something was changed, or all was taken: a snapshot
	Look    Kind = "look"    // someone looked at records or figures that may be of persons
	Login   Kind = "login"   // a session began or ended, or a machine joined
	Refusal Kind = "refusal" // someone was refused
	Gap     Kind = "gap"     // entries that could not be kept
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Change, Look, Login, Refusal, Gap} }

// Entry is what someone did.
type Entry struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Who is the name of the principal, and Roles are the roles that it had.
	Who   string `json:"who"`
	Roles string `json:"roles,omitempty"`
	// From is the address of the client; "" where there is none.
	From string `json:"from,omitempty"`
	// Route is the method and the pattern of the route.
	Route string `json:"route,omitempty"`
	// About is the path, and what the query asked for: whose data it was.
	About string `json:"about,omitempty"`
	// Result says what came of it: the status, or words.
	Result string `json:"result,omitempty"`
	// Node noted it. It stands in the document.
	Node string `json:"-"`
}

const (
	space  = "audit"
	format = 1
	// stampFormat begins a key: the day of the entries, and when they were written down.
	stampFormat = "2006-01-02/150405.000000-"
	dayLen      = len(time.DateOnly)
)

// document is what is stored of some entries of one day and node.
type document struct {
	Format  int     `json:"format"`
	Node    string  `json:"node"`
	Entries []Entry `json:"entries"`
}

func readDocument(d *store.Document) (*document, error) {
	var out document
	if err := json.Unmarshal(d.Value, &out); err != nil {
		return nil, fmt.Errorf("audit log: %s: %w", d.Key, err)
	}
	if out.Format != format {
		return nil, fmt.Errorf("audit log: %s: format %d, this program knows %d; upgrade it", d.Key, out.Format, format)
	}
	for i := range out.Entries {
		out.Entries[i].Node = out.Node
	}
	return &out, nil
}

// View reads documents of the replicated state.
type View interface {
	Documents(space, prefix string, yield func(store.Document) error) error
}

// Read calls yield with the entries from a time on and before another, the newest first, until
// yield returns false. Each day between them costs a look into the store.
func Read(v View, from, to time.Time, yield func(*Entry) bool) error {
	first := from.UTC().Format(time.DateOnly)
	for at := to.UTC(); at.Format(time.DateOnly) >= first; at = at.AddDate(0, 0, -1) {
		list, err := readDay(v, at.Format(time.DateOnly))
		if err != nil {
			return err
		}
		for i := range list {
			if e := &list[i]; !e.At.Before(from) && e.At.Before(to) && !yield(e) {
				return nil
			}
		}
	}
	return nil
}

// readDay returns the entries of a day, the newest first.
func readDay(v View, day string) (list []Entry, err error) {
	err = v.Documents(space, day+"/", func(d store.Document) error {
		doc, err := readDocument(&d)
		if err == nil {
			list = append(list, doc.Entries...)
		}
		return err
	})
	slices.SortStableFunc(list, func(a, b Entry) int { return b.At.Compare(a.At) })
	return list, err
}

// Replace puts what replace makes of it in the place of each text of the entries in which a
// person may be named, and returns how many entries have changed. An error of write ends it.
func Replace(v View, write func(store.Command) error, replace func(string) string) (n int, err error) {
	err = v.Documents(space, "", func(d store.Document) error {
		doc, err := readDocument(&d)
		if err != nil {
			return err
		}
		before := n
		for i := range doc.Entries {
			e := &doc.Entries[i]
			if who, about := replace(e.Who), replace(e.About); who != e.Who || about != e.About {
				e.Who, e.About = who, about
				n++
			}
		}
		if n == before {
			return nil
		}
		value, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		return write(&store.DocumentCommand{
			If:   []store.Document{{Space: space, Key: d.Key, Value: d.Value}}, // else its time has come
			Sets: []store.Document{{Space: space, Key: d.Key, Value: value}},
		})
	})
	return n, err
}
