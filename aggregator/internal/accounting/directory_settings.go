package accounting

import (
	"fmt"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// DirectorySettings are what a configuration says. Places say where, as people read them:
// file:line.
type DirectorySettings struct {
	// UserKey, GroupKey and HostKey are the meta keys of records that name a user, a
	// group and a host; "" is user_id, group_id and host.
	UserKey, GroupKey, HostKey string

	People        []Person
	Projects      []Project
	Tables        []DirectoryTable
	Classes       []Class
	Units         UnitRates
	Contributions []Contribution
}

// Person is someone with an account, or a principal investigator.
type Person struct {
	ID, Name, Address string
	// Groups are those that the person is in, in the order of the times from which on
	// they hold.
	Groups []Groups
	// Leads are the groups whose records the person may see, see [Directory.Own].
	Leads []string
	Place string
}

// Groups are the groups of someone from a time on, the one that counts first.
type Groups struct {
	From  record.Time // None: since ever
	Names []string
	Place string
}

// Project is what groups and users work for.
type Project struct {
	ID string
	// From and To bound the time in which there is the project; None does not.
	From, To record.Time
	// States say how it is, in the order of the times from which on they hold. The
	// From of the first is that of the project.
	States []ProjectState
	Place  string
}

// ProjectState is how a project is from a time on.
type ProjectState struct {
	From record.Time
	// PI is the principal investigator; "": no one.
	PI string
	// Groups and Users are those that the project claims.
	Groups, Users []string
	// Exempt says whether its usage counts against no contribution; nil says nothing,
	// and what no one calls exempt is not.
	Exempt *bool
	Place  string
}

// Class is a kind of hosts.
type Class struct {
	ID string
	// Pattern is a regular expression; a host that it matches anywhere is in the class,
	// unless it is in one before.
	Pattern string
	// Factors are what an hour on these hosts is worth, in the order of their times.
	Factors []Factor
	Place   string
}

// Factor is what an hour is worth from a time on.
type Factor struct {
	From   record.Time
	Factor Decimal
	Place  string
}

// UnitRates say what a service unit is.
type UnitRates struct {
	// Name is how the unit is called; "" is SU.
	Name string
	// Rates are what one of a component that is held for an hour is worth, on a host
	// of factor 1.
	Rates []UnitRate
	// Seconds are components that are totals counted in seconds, such as CPU time, and
	// what 3600 of them are worth. With neither these nor Rates it is one for Cores.
	Seconds []UnitRate
	// Default is the factor of hosts without one; nil: that is not known.
	Default *Decimal
	Place   string
}

// UnitRate is what a component is worth.
type UnitRate struct {
	Component string
	Worth     Decimal
	Place     string
}

// Contribution is what someone put in, and to whom it is credited.
type Contribution struct {
	ID string
	// By put it in, and Credit may use it; "" is By.
	By, Credit string
	// Amount is how many processors, Split how many per cent of them this is about, and
	// Factor what each is worth.
	Amount, Split, Factor Decimal
	// From and To bound the time in which it is there; None does not.
	From, To record.Time
	Place    string
}

// setDefaults fills in what is not written.
func (s *DirectorySettings) setDefaults() {
	for to, word := range map[*string]string{&s.UserKey: "user_id", &s.GroupKey: "group_id", &s.HostKey: "host", &s.Units.Name: "SU"} {
		if *to == "" {
			*to = word
		}
	}
	if s.Units.Rates == nil && s.Units.Seconds == nil {
		s.Units.Rates = []UnitRate{{Component: "Cores", Worth: One}}
	}
}

// DirectoryProblem is something that cannot be so.
type DirectoryProblem struct {
	// Place is where it is written; "" when that is not known.
	Place string
	Text  string
}

// DirectoryProblems are all that is wrong with settings.
type DirectoryProblems []DirectoryProblem

// Error implements error.
func (p DirectoryProblems) Error() string {
	const most = 20
	var b strings.Builder
	for i, x := range p {
		if i == most {
			fmt.Fprintf(&b, "; and %d other problems", len(p)-most)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if x.Place != "" {
			b.WriteString(x.Place + ": ")
		}
		b.WriteString(x.Text)
	}
	return b.String()
}

func (p *DirectoryProblems) addProblem(place, format string, args ...any) {
	*p = append(*p, DirectoryProblem{place, fmt.Sprintf(format, args...)})
}

// ParseTime reads RFC 3339, or a date, which is its first instant by the clock of the zone;
// nil is UTC. "" is None.
func ParseTime(text string, zone *time.Location) (record.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return record.None, nil
	}
	if zone == nil {
		zone = time.UTC
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		if at := record.Time(t.UnixMicro()); at >= record.MinTime && at <= record.MaxTime {
			return at, nil
		}
	}
	t, err := record.ParseTime(text)
	if why := calendar.Impossible(text); err != nil && why != "" {
		return record.None, fmt.Errorf("invalid time %q: %s", clipText(text), why)
	}
	if err != nil {
		return record.None, fmt.Errorf("invalid time %q: use a date like 2026-07-01, or RFC 3339 like 2026-07-01T00:00:00+02:00", clipText(text))
	}
	return t, nil
}

// clipText shortens a text for a message.
func clipText(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
