package api

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// unclaimedDays is how far back records count for what no one claims, and
// maxUnclaimed how many lines of it there are.
const (
	unclaimedDays = 90
	maxUnclaimed  = 1000
)

// currentDirectory is who belongs where now.
func (s *Server) currentDirectory() (*accounting.Directory, error) {
	if s.opt.Directory != nil {
		return s.opt.Directory(), nil
	}
	return accounting.NewDirectory(accounting.DirectorySettings{}, nil)
}

// v1Directory is GET /v1/directory: who belongs where at an instant. Who sees some
// of the records only does not see it: it has no meta.
func (s *Server) v1Directory(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	q, err := decodeQuery[v1.DirectoryQuery](r)
	if err != nil {
		return err
	}
	at, err := parseAt(q.At, s.currentTime(), s.siteZone())
	if err != nil {
		return err
	}
	d, err := s.currentDirectory()
	if err != nil {
		return err
	}
	out := describeDirectory(d, at)
	if q.Unclaimed {
		if out.Unclaimed, err = s.unclaimedUsage(r.Context(), view, d, at); err != nil {
			return err
		}
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

func describeDirectory(d *accounting.Directory, at record.Time) *v1.Directory {
	set := d.Settings()
	out := &v1.Directory{At: v1.Stamp(at), People: []v1.Person{}, Projects: []v1.Project{}, HostClasses: []v1.HostClass{}, Contributions: []v1.Contribution{}}
	out.Keys.User, out.Keys.Group, out.Keys.Host = set.UserKey, set.GroupKey, set.HostKey
	for _, id := range d.People() {
		out.People = append(out.People, describePerson(d, id, at))
	}
	for _, p := range d.Projects(at) {
		name, _ := d.Name(p.PI)
		out.Projects = append(out.Projects, v1.Project{
			ID: p.ID, PI: v1.Text(p.PI), PIName: v1.Text(name), Groups: listJSON(p.Groups), Users: listJSON(p.Users), Exempt: p.Exempt, Since: v1.Stamp(p.Since), Until: v1.Stamp(p.Until),
		})
	}
	for _, c := range d.ClassesAt(at) {
		out.HostClasses = append(out.HostClasses, v1.HostClass{ID: c.ID, Pattern: c.Pattern, SUFactor: decimalJSON(c.Factor)})
	}
	if _, ok := d.Units(); ok {
		u := set.Units
		out.ServiceUnits = &v1.ServiceUnits{Unit: u.Name, Components: ratesJSON(u.Rates), Seconds: ratesJSON(u.Seconds), DefaultFactor: decimalJSON(u.Default)}
	}
	for _, c := range d.Contributions(at) {
		out.Contributions = append(out.Contributions, v1.Contribution{
			ID: c.ID, By: c.By, Credit: c.Credit, Amount: json.Number(c.Amount.String()), Split: json.Number(c.Split.String()),
			SUFactor: json.Number(c.Factor.String()), Units: ratJSON(c.Units), From: v1.Stamp(c.From), To: v1.Stamp(c.To),
		})
	}
	return out
}

func describePerson(d *accounting.Directory, id string, at record.Time) v1.Person {
	name, email := d.Name(id)
	p := v1.Person{ID: id, Name: v1.Text(name), Email: v1.Text(email), Groups: listJSON(d.Groups(id, at))}
	if project, ok := d.Project(id, "", at); ok {
		pi, _ := d.PI(project, at)
		p.Project, p.PI = v1.Text(project), v1.Text(pi)
	}
	return p
}

func listJSON(s []string) []string { return append([]string{}, s...) }

func decimalJSON(d *accounting.Decimal) *json.Number {
	if d == nil {
		return nil
	}
	n := json.Number(d.String())
	return &n
}

func ratesJSON(list []accounting.UnitRate) map[string]json.Number {
	out := map[string]json.Number{}
	for _, w := range list {
		out[w.Component] = json.Number(w.Worth.String())
	}
	return out
}

// ratJSON writes a figure with nine digits after the point.
func ratJSON(r *big.Rat) json.Number { return json.Number(r.FloatString(9)) }

// unclaimedUsage are the groups and users that have records and no project.
func (s *Server) unclaimedUsage(ctx context.Context, view *access.View, d *accounting.Directory, at record.Time) (*v1.Unclaimed, error) {
	from := max(at-unclaimedDays*record.Day, record.MinTime)
	out := &v1.Unclaimed{From: v1.Stamp(from), To: v1.Stamp(at), Lines: []v1.UnclaimedUsage{}}
	set := d.Settings()
	a, err := s.usageOf(view)(ctx, sums.Query{
		Edges: []record.Time{from, max(at, from+1)}, By: []string{set.GroupKey, set.UserKey}, Counts: true, Components: []string{}, Now: s.currentTime(),
		Keep: func(values []string, _ []bool) bool {
			_, claimed := d.Project(values[1], values[0], at)
			return !claimed
		},
	})
	if err != nil {
		return nil, err
	}
	for g := range a.Groups {
		if n := a.Records[g]; n > 0 {
			out.Lines = append(out.Lines, v1.UnclaimedUsage{Group: v1.Text(a.Groups[g].Values[0]), User: v1.Text(a.Groups[g].Values[1]), Records: n})
		}
	}
	slices.SortStableFunc(out.Lines, func(a, b v1.UnclaimedUsage) int {
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

// usageOf returns a function that answers questions as the principal of the view sees the
// answers.
func (s *Server) usageOf(view *access.View) sums.AskFunc {
	return func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		if s.opt.Usage == nil {
			return nil, newRefusal(http.StatusNotImplemented, "this server does not add up usage")
		}
		return view.Usage(ctx, s.derivation(), func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
			return s.opt.Usage.Usage(ctx, view.Principal(), q)
		}, q)
	}
}
