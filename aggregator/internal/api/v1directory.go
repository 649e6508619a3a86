package api

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/derive"
	"github.com/bursar-accounting/bursar/aggregator/internal/directory"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// unclaimedDays is how far back records count for what nobody claims, and
// maxUnclaimed how many lines of it there are.
const (
	unclaimedDays = 90
	maxUnclaimed  = 1000
)

type jsonDirectory struct {
	At   string `json:"at"`
	Keys struct {
		User  string `json:"user"`
		Group string `json:"group"`
		Host  string `json:"host"`
	} `json:"keys"`
	People        []jsonPerson       `json:"people"`
	Projects      []jsonProject      `json:"projects"`
	HostClasses   []jsonClass        `json:"host_classes"`
	ServiceUnits  *jsonUnits         `json:"service_units"`
	Contributions []jsonContribution `json:"contributions"`
	Unclaimed     *jsonUnclaimed     `json:"unclaimed"`
}

type jsonPerson struct {
	ID      string   `json:"id"`
	Name    *string  `json:"name"`
	Email   *string  `json:"email"`
	Groups  []string `json:"groups"`
	Project *string  `json:"project"`
	PI      *string  `json:"pi"`
}

type jsonProject struct {
	ID     string   `json:"id"`
	PI     *string  `json:"pi"`
	PIName *string  `json:"pi_name"`
	Groups []string `json:"groups"`
	Users  []string `json:"users"`
	Exempt bool     `json:"exempt"`
	Since  *string  `json:"since"`
	Until  *string  `json:"until"`
}

type jsonClass struct {
	ID      string       `json:"id"`
	Pattern string       `json:"pattern"`
	Factor  *json.Number `json:"su_factor"`
}

type jsonUnits struct {
	Unit          string                 `json:"unit"`
	Components    map[string]json.Number `json:"components"`
	Seconds       map[string]json.Number `json:"seconds"`
	DefaultFactor *json.Number           `json:"default_factor"`
}

type jsonContribution struct {
	ID     string      `json:"id"`
	By     string      `json:"by"`
	Credit string      `json:"credit"`
	Amount json.Number `json:"amount"`
	Split  json.Number `json:"split"`
	Factor json.Number `json:"su_factor"`
	Units  json.Number `json:"units"`
	From   *string     `json:"from"`
	To     *string     `json:"to"`
}

type jsonUnclaimed struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Lines are those with the most records; More is how many others there are.
	Lines []jsonNobody `json:"lines"`
	More  int          `json:"more"`
}

type jsonNobody struct {
	Group   *string `json:"group"`
	User    *string `json:"user"`
	Records uint64  `json:"records"`
}

// directory is who belongs where now.
func (s *Server) directory() (*directory.Directory, error) {
	if s.opt.Directory != nil {
		return s.opt.Directory(), nil
	}
	return directory.Make(directory.Settings{}, nil)
}

// v1Directory is GET /v1/directory: who belongs where at an instant. Who sees some
// of the records only does not see it: it has no meta.
func (s *Server) v1Directory(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	words, err := fieldsOf(r.URL.RawQuery, "at", "unclaimed")
	if err != nil {
		return err
	}
	at, now := s.now(), s.now()
	if word := words["at"]; word != "" {
		if at, err = calendar.Point(word, now, time.UTC); err != nil {
			return refuse(http.StatusBadRequest, "at: %v", err)
		}
	}
	d, err := s.directory()
	if err != nil {
		return err
	}
	out := describeDirectory(d, at)
	switch words["unclaimed"] {
	case "", "false":
	case "true":
		if out.Unclaimed, err = s.unclaimed(r.Context(), d, at); err != nil {
			return err
		}
	default:
		return refuse(http.StatusBadRequest, "unclaimed is %q, want true or false", words["unclaimed"])
	}
	answer(w, http.StatusOK, out)
	return nil
}

// fieldsOf reads a query whose fields are there once at most.
func fieldsOf(query string, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	words := map[string]string{}
	for field, list := range values {
		switch {
		case field == "consistency" || field == "max_age": // read before
		case !slices.Contains(known, field):
			return nil, refuse(http.StatusBadRequest, "unknown field `%s`, expected one of %s", field, quoted(known))
		case len(list) > 1:
			return nil, refuse(http.StatusBadRequest, "%s is there twice", field)
		}
		words[field] = list[0]
	}
	return words, nil
}

func describeDirectory(d *directory.Directory, at record.Time) *jsonDirectory {
	set := d.Settings()
	out := &jsonDirectory{At: at.String(), People: []jsonPerson{}, Projects: []jsonProject{}, HostClasses: []jsonClass{}, Contributions: []jsonContribution{}}
	out.Keys.User, out.Keys.Group, out.Keys.Host = set.UserKey, set.GroupKey, set.HostKey
	for _, id := range d.People() {
		out.People = append(out.People, describePerson(d, id, at))
	}
	for _, p := range d.Projects(at) {
		name, _ := d.Name(p.PI)
		out.Projects = append(out.Projects, jsonProject{
			ID: p.ID, PI: noneIfEmpty(p.PI), PIName: noneIfEmpty(name), Groups: list(p.Groups), Users: list(p.Users), Exempt: p.Exempt, Since: stamp(p.Since), Until: stamp(p.Until),
		})
	}
	for _, c := range d.ClassesAt(at) {
		out.HostClasses = append(out.HostClasses, jsonClass{c.ID, c.Pattern, number(c.Factor)})
	}
	if _, ok := d.Units(); ok {
		u := set.Units
		out.ServiceUnits = &jsonUnits{u.Name, worths(u.Rates), worths(u.Seconds), number(u.Default)}
	}
	for _, c := range d.Contributions(at) {
		out.Contributions = append(out.Contributions, jsonContribution{
			ID: c.ID, By: c.By, Credit: c.Credit, Amount: json.Number(c.Amount.String()), Split: json.Number(c.Split.String()),
			Factor: json.Number(c.Factor.String()), Units: decimals(c.Units), From: stamp(c.From), To: stamp(c.To),
		})
	}
	return out
}

func describePerson(d *directory.Directory, id string, at record.Time) jsonPerson {
	name, email := d.Name(id)
	p := jsonPerson{ID: id, Name: noneIfEmpty(name), Email: noneIfEmpty(email), Groups: list(d.Groups(id, at))}
	if project, ok := d.Project(id, "", at); ok {
		pi, _ := d.PI(project, at)
		p.Project, p.PI = &project, noneIfEmpty(pi)
	}
	return p
}

// noneIfEmpty is nil for "".
func noneIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func list(s []string) []string { return append([]string{}, s...) }

func number(d *directory.Decimal) *json.Number {
	if d == nil {
		return nil
	}
	n := json.Number(d.String())
	return &n
}

func worths(list []directory.Worth) map[string]json.Number {
	out := map[string]json.Number{}
	for _, w := range list {
		out[w.Component] = json.Number(w.Worth.String())
	}
	return out
}

// decimals writes a figure with nine digits after the point.
func decimals(r *big.Rat) json.Number { return json.Number(r.FloatString(9)) }

// unclaimed are the groups and users that have records and no project.
func (s *Server) unclaimed(ctx context.Context, d *directory.Directory, at record.Time) (*jsonUnclaimed, error) {
	from := max(at-unclaimedDays*record.Day, record.MinTime)
	out := &jsonUnclaimed{From: from.String(), To: at.String(), Lines: []jsonNobody{}}
	set := d.Settings()
	a, err := s.ask(ctx, derive.Question{Question: usage.Question{
		Edges: []record.Time{from, max(at, from+1)}, By: []string{set.GroupKey, set.UserKey}, Counts: true, Components: []string{}, Now: s.now(),
		Keep: func(values []string, _ []bool) bool {
			_, claimed := d.Project(values[1], values[0], at)
			return !claimed
		},
	}})
	if err != nil {
		return nil, err
	}
	for g := range a.Groups {
		if n := a.Records[g]; n > 0 {
			out.Lines = append(out.Lines, jsonNobody{noneIfEmpty(a.Groups[g].Values[0]), noneIfEmpty(a.Groups[g].Values[1]), n})
		}
	}
	slices.SortStableFunc(out.Lines, func(a, b jsonNobody) int {
		if a.Records > b.Records {
			return -1
		}
		return int(min(b.Records-a.Records, 1))
	})
	if len(out.Lines) > maxUnclaimed {
		out.More = len(out.Lines) - maxUnclaimed
		out.Lines = out.Lines[:maxUnclaimed]
	}
	return out, nil
}

// ask answers a question as the principal of ctx.
func (s *Server) ask(ctx context.Context, q derive.Question) (*derive.Answer, error) {
	if s.opt.Usage == nil {
		return nil, refuse(http.StatusNotImplemented, "this server does not add up usage")
	}
	return s.book().Answer(ctx, func(ctx context.Context, q usage.Question) (*usage.Answer, error) {
		return s.opt.Usage.Usage(ctx, access.From(ctx), q)
	}, q)
}
