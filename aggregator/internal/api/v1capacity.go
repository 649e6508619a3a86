package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/capacity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// capacityQuery is a query of /v1/capacity.
type capacityQuery struct {
	at     record.Time
	window *calendar.Window // nil: no steps
}

type jsonCapacity struct {
	At       string        `json:"at"`
	Window   *jsonWindow   `json:"window"`
	Clusters []jsonCluster `json:"clusters"`
	Groups   []jsonGroup   `json:"groups"`
	// Census is null for who sees some of the records only.
	Census *jsonCensus `json:"census"`
}

// jsonAmounts are by component; null where nobody says how much there is.
type jsonAmounts map[string]*json.Number

type jsonCluster struct {
	Name       string              `json:"name"`
	Configured bool                `json:"configured"`
	Match      map[string][]string `json:"match"`
	Sources    []string            `json:"sources"`
	Parts      []jsonPart          `json:"parts"`
	Components jsonAmounts         `json:"components"`
	Steps      []jsonStep          `json:"steps"`
}

type jsonPart struct {
	Name       string           `json:"name"`
	From       *string          `json:"from"`
	To         *string          `json:"to"`
	Components map[string]int64 `json:"components"`
}

type jsonStep struct {
	From       string      `json:"from"`
	Components jsonAmounts `json:"components"`
}

type jsonGroup struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
	Groups   []string `json:"groups"`
	// Members are all clusters of it, and Unknown those that nobody knows.
	Members    []string    `json:"members"`
	Unknown    []string    `json:"unknown"`
	Components jsonAmounts `json:"components"`
	Steps      []jsonStep  `json:"steps"`
}

type jsonCensus struct {
	Running int64              `json:"running"`
	Pending int64              `json:"pending"`
	Sources []jsonCensusSource `json:"sources"`
}

type jsonCensusSource struct {
	Source  string `json:"source"`
	At      string `json:"at"`
	Running int64  `json:"running"`
	Pending int64  `json:"pending"`
	// Rows is null for who does not read all records.
	Rows []jsonCensusRow `json:"rows"`
}

type jsonCensusRow struct {
	User    string `json:"user"`
	Queue   string `json:"queue"`
	Running int64  `json:"running"`
	Pending int64  `json:"pending"`
}

// v1Capacity is GET /v1/capacity: what clusters have, and how many jobs run and
// wait.
func (s *Server) v1Capacity(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if !view.Principal().Rows.All() {
		return access.ErrRows // it names clusters whose records the principal may not see
	}
	q, err := parseCapacity(r.URL.RawQuery, s.now())
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	out := jsonCapacity{At: q.at.String(), Clusters: []jsonCluster{}, Groups: []jsonGroup{}}
	if q.window != nil {
		out.Window = &jsonWindow{q.window.From.String(), q.window.To.String()}
	}
	if s.opt.Capacity != nil {
		q.clusters(&out, s.opt.Capacity())
	}
	if out.Census, err = censusOf(view); err != nil {
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
}

func parseCapacity(rawQuery string, now record.Time) (q capacityQuery, err error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return q, err
	}
	for name, list := range values {
		switch {
		case !slices.Contains([]string{"at", "window", "from", "to", "zone"}, name):
			return q, fmt.Errorf("unknown field `%s`, expected one of at, window, from, to, zone", name)
		case len(list) > 1:
			return q, fmt.Errorf("%s is there twice", name)
		}
	}
	zone, err := calendar.Zone(values.Get("zone"))
	if err != nil {
		return q, err
	}
	if q.at = now; values.Get("at") != "" {
		if q.at, err = calendar.Point(values.Get("at"), now, zone); err != nil {
			return q, fmt.Errorf("at: %w", err)
		}
	}
	q.window, err = capacityWindow(values, now, zone)
	return q, err
}

// capacityWindow is nil when there is none.
func capacityWindow(values url.Values, now record.Time, zone *time.Location) (*calendar.Window, error) {
	word, from, to := values.Get("window"), values.Get("from"), values.Get("to")
	var w calendar.Window
	var err error
	switch {
	case word == "" && from == "" && to == "":
		return nil, nil //nolint:nilnil // nobody asks for one
	case word != "" && (from != "" || to != ""):
		return nil, fmt.Errorf("there is window, and from or to; want one of the two")
	case word != "":
		w, err = calendar.ParseWindow(word, now, zone)
	default:
		w, err = calendar.Between(from, to, now, zone)
	}
	return &w, err
}

// clusters tells what there is.
func (q *capacityQuery) clusters(out *jsonCapacity, all *capacity.Capacities) {
	for _, c := range all.List() {
		j := jsonCluster{Name: c.Name, Configured: c.Configured, Match: map[string][]string{}, Sources: []string{}, Parts: []jsonPart{}}
		for _, m := range c.Match {
			j.Match[m.Key] = m.Values
		}
		for _, o := range c.From {
			j.Sources = append(j.Sources, o.String())
		}
		for i := range c.Parts {
			p := &c.Parts[i]
			j.Parts = append(j.Parts, jsonPart{p.Name, stamp(p.From), stamp(p.To), p.Components})
		}
		j.Components, j.Steps = q.amounts(all, c.Name, c.Components)
		out.Clusters = append(out.Clusters, j)
	}
	for _, g := range all.Groups() {
		j := jsonGroup{Name: g.Name, Clusters: orEmpty(g.Clusters), Groups: orEmpty(g.Groups)}
		members, unknown := all.Members(g.Name)
		j.Members, j.Unknown = orEmpty(members), orEmpty(unknown)
		j.Components, j.Steps = q.amounts(all, g.Name, all.Components())
		out.Groups = append(out.Groups, j)
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// amounts are what a cluster or a group has at the instant and, with a window, at
// each at which something changes in it.
func (q *capacityQuery) amounts(all *capacity.Capacities, name string, components []string) (now jsonAmounts, list []jsonStep) {
	at := func(t record.Time) jsonAmounts {
		out := jsonAmounts{}
		for _, component := range components {
			out[component] = amount(all.At(name, component, t), component)
		}
		return out
	}
	if q.window == nil {
		return at(q.at), nil
	}
	var instants []record.Time
	for _, component := range components {
		for _, s := range all.Steps(name, component, q.window.From, q.window.To) {
			instants = append(instants, s.From)
		}
	}
	slices.Sort(instants)
	list = []jsonStep{}
	for _, t := range slices.Compact(instants) {
		list = append(list, jsonStep{t.String(), at(t)})
	}
	return at(q.at), list
}

// amount is nil where it is not known.
func amount(s capacity.Step, component string) *json.Number {
	if !s.Known {
		return nil
	}
	text := s.Amount.String()
	if component == capacity.SU {
		text = new(big.Rat).SetFrac(s.Amount.Big(), big.NewInt(capacity.FactorOne)).FloatString(9)
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	n := json.Number(text)
	return &n
}

// censusOf is nil for who sees some of the records only.
func censusOf(view *access.View) (*jsonCensus, error) {
	facts, err := view.Census()
	if errors.Is(err, access.ErrRows) {
		return nil, nil //nolint:nilnil // it is not shown in part
	}
	if err != nil {
		return nil, err
	}
	list, err := capacity.Censuses(facts)
	if err != nil {
		return nil, err
	}
	out := &jsonCensus{Sources: []jsonCensusSource{}}
	for i := range list {
		c := &list[i]
		j := jsonCensusSource{Source: c.Source.String(), At: c.At.String(), Running: c.Running, Pending: c.Pending}
		if view.SeesAll() {
			j.Rows = make([]jsonCensusRow, len(c.Rows))
			for k := range c.Rows {
				j.Rows[k] = jsonCensusRow(c.Rows[k])
			}
		}
		out.Running, out.Pending = out.Running+c.Running, out.Pending+c.Pending
		out.Sources = append(out.Sources, j)
	}
	return out, nil
}
