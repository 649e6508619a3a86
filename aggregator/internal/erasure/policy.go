package erasure

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// AuditMonths is how many months entries of the audit log are kept where nothing else is said.
const AuditMonths = 12

// Policy says how long names of persons are kept.
type Policy struct {
	// Months is how many months from the stop of a run its record keeps names at most; 0 is
	// for ever.
	Months int
	// Drop are meta keys that such a record loses too.
	Drop []string
	// AuditMonths is how many months entries of the audit log are kept; 0 is [AuditMonths].
	AuditMonths int
	// Zone is that by whose calendar months are counted; nil is UTC.
	Zone *time.Location
}

// KeptAudit is for how many months entries of the audit log are kept.
func (p Policy) KeptAudit() int { return cmp.Or(p.AuditMonths, AuditMonths) }

// Until is the stop before which records keep no names at a time. Calendar months go whole,
// when their first day is so many months ago: no record keeps names for longer, and how many
// people a month had stays as it is.
func (p Policy) Until(now time.Time) record.Time {
	t := now.In(p.timeZone())
	return record.FromStd(time.Date(t.Year(), t.Month()-time.Month(p.Months)+1, 1, 0, 0, 0, 0, p.timeZone()))
}

func (p Policy) timeZone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

// monthName names the calendar month of an instant.
func (p Policy) monthName(at record.Time) string { return at.Std().In(p.timeZone()).Format("2006-01") }

// Source is a picture of all records.
type Source interface {
	Query(ctx context.Context, q store.Query, yield func(*columns.Row) error) error
	// Holdings returns what each origin says of the run of a row.
	Holdings(row *columns.Row) ([]record.Holding, error)
	Quarantine(yield func(*store.Quarantined) error) error
	Archives() []store.Archive
}

// Due is what a policy removes at a time.
type Due struct {
	Until record.Time
	// Records have a name, of so many People.
	Records, People int
	// Quarantined are jobs in quarantine that last came so long ago.
	Quarantined int
	// Archived records keep their names: their details are in archives.
	Archived int
	// Archives are those with records of that time. Their files have names, too.
	Archives []string
	// Keys are how many of the records have each meta key that stays.
	Keys map[string]int
}

// Look says what a policy would remove now, and changes nothing.
func Look(ctx context.Context, from Source, policy Policy, keys *Keys, now time.Time) (*Due, error) {
	due := &Due{Until: policy.Until(now), Archives: archivesBefore(from, policy.Until(now)), Keys: map[string]int{}}
	people := map[string]bool{}
	err := from.Query(ctx, stoppedBefore(due.Until), func(row *columns.Row) error {
		names, isDue, err := keys.findDue(from.Holdings, row)
		switch {
		case err != nil || !isDue:
			return err
		case row.Archived:
			due.Archived++
			return nil
		}
		due.Records++
		for _, name := range names {
			people[strings.Clone(name)] = true
		}
		for i := range row.Record.Meta {
			if key := row.Record.Meta[i].Key; !keys.isDropped(key) {
				due.Keys[key]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	due.People = len(people)
	return due, from.Quarantine(func(q *store.Quarantined) error {
		if q.Last < due.Until {
			due.Quarantined++
		}
		return nil
	})
}

// stoppedBefore selects the records that stopped before a time, in the order of their numbers.
func stoppedBefore(until record.Time) (q store.Query) {
	q.Stop.LT(int64(until))
	q.Order = store.BySeq
	return q
}

// archivesBefore names the archives of which some records may have stopped before a time.
func archivesBefore(from Source, until record.Time) (names []string) {
	for _, a := range from.Archives() {
		if a.From < until {
			names = append(names, a.Name)
		}
	}
	return names
}

// userNames are the users that a record names, those without a name left out.
func (k *Keys) userNames(m record.Meta) (list []string) {
	for i := range m {
		if !k.Users[m[i].Key] {
			continue
		}
		for _, v := range m[i].Values {
			if v != "" && !strings.HasPrefix(v, Prefix) {
				list = append(list, v)
			}
		}
	}
	return list
}

// findDue reports whether a record has something to lose, and returns the users whom it names.
// Another origin may name a user of the run whom the record does not name.
func (k *Keys) findDue(holdings func(*columns.Row) ([]record.Holding, error), row *columns.Row) (names []string, isDue bool, err error) {
	names = k.userNames(row.Record.Meta)
	isDue = k.hasDue(row.Record.Meta, names)
	if row.Origin == erasedSource() { // no other origin knows its id
		return names, isDue, nil
	}
	all, err := holdings(row)
	for i := range all {
		if r := all[i].Record; r != nil {
			others := k.userNames(r.Meta)
			isDue = isDue || k.hasDue(r.Meta, others)
			for _, name := range others {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, isDue, err
}

// hasDue reports whether a record with these names has something to lose.
func (k *Keys) hasDue(m record.Meta, names []string) bool {
	for i := range m {
		if k.isDropped(m[i].Key) {
			return true
		}
	}
	return len(names) > 0
}
