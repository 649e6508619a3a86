package api

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// capacityQuery is a query of /v1/capacity.
type capacityQuery struct {
	at     record.Time
	window *calendar.Window // nil: no steps
}

// v1Capacity is GET /v1/capacity: what clusters have, and how many jobs run and
// wait.
func (s *Server) v1Capacity(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if !view.Principal().Rows.All() {
		return access.ErrRows // it names clusters whose records the principal may not see
	}
	q, err := s.parseCapacity(r, s.currentTime())
	if err != nil {
		return err
	}
	out := v1.Capacity{At: v1.Stamp(q.at), Clusters: []v1.Cluster{}, Groups: []v1.ClusterGroup{}}
	if q.window != nil {
		out.Window = &v1.Window{From: v1.Stamp(q.window.From), To: v1.Stamp(q.window.To)}
	}
	if s.opt.Capacity != nil {
		q.addClusters(&out, s.opt.Capacity())
	}
	if out.Census, err = censusOf(view); err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) parseCapacity(r *http.Request, now record.Time) (q capacityQuery, err error) {
	in, err := decodeQuery[v1.CapacityQuery](r)
	if err != nil {
		return q, err
	}
	zone, err := s.parseZone(in.Zone)
	if err != nil {
		return q, err
	}
	if q.at, err = parseAt(in.At, now, zone); err != nil {
		return q, err
	}
	q.window, err = parseWindow(in.Window, in.From, in.To, now, zone)
	return q, err
}

// addClusters adds the clusters and groups that there are.
func (q *capacityQuery) addClusters(out *v1.Capacity, all *accounting.Capacities) {
	for _, c := range all.List() {
		j := v1.Cluster{Name: c.Name, Configured: c.Configured, Match: map[string][]string{}, Sources: []string{}, Parts: []v1.ClusterPart{}}
		for _, m := range c.Match {
			j.Match[m.Key] = m.Values
		}
		for _, o := range c.From {
			j.Sources = append(j.Sources, o.String())
		}
		for i := range c.Parts {
			p := &c.Parts[i]
			j.Parts = append(j.Parts, v1.ClusterPart{Name: p.Name, From: v1.Stamp(p.From), To: v1.Stamp(p.To), Components: p.Components})
		}
		j.Components, j.Steps = q.amountSteps(all, c.Name, c.Components)
		out.Clusters = append(out.Clusters, j)
	}
	for _, g := range all.Groups() {
		j := v1.ClusterGroup{Name: g.Name, Clusters: orEmpty(g.Clusters), Groups: orEmpty(g.Groups)}
		members, unknown := all.Members(g.Name)
		j.Members, j.Unknown = orEmpty(members), orEmpty(unknown)
		j.Components, j.Steps = q.amountSteps(all, g.Name, all.Components())
		out.Groups = append(out.Groups, j)
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// amountSteps are what a cluster or a group has at the instant and, with a window, at
// each at which something changes in it.
func (q *capacityQuery) amountSteps(all *accounting.Capacities, name string, components []string) (now v1.Amounts, list []v1.CapacityStep) {
	at := func(t record.Time) v1.Amounts {
		out := v1.Amounts{}
		for _, component := range components {
			out[component] = capacityAmount(all.At(name, component, t), component)
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
	list = []v1.CapacityStep{}
	for _, t := range slices.Compact(instants) {
		list = append(list, v1.CapacityStep{From: v1.Stamp(t), Components: at(t)})
	}
	return at(q.at), list
}

// capacityAmount is nil where it is not known.
func capacityAmount(s accounting.CapacityStep, component string) *json.Number {
	if !s.Known {
		return nil
	}
	text := s.Amount.String()
	if component == accounting.SU {
		text = new(big.Rat).SetFrac(s.Amount.Big(), big.NewInt(accounting.FactorOne)).FloatString(9)
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	n := json.Number(text)
	return &n
}

// censusOf is nil for who sees some of the records only.
func censusOf(view *access.View) (*v1.Census, error) {
	facts, err := view.Census()
	if errors.Is(err, access.ErrRows) {
		return nil, nil //nolint:nilnil // it is not shown in part
	}
	if err != nil {
		return nil, err
	}
	list, err := accounting.Censuses(facts)
	if err != nil {
		return nil, err
	}
	out := &v1.Census{Sources: []v1.CensusSource{}}
	for i := range list {
		c := &list[i]
		j := v1.CensusSource{Source: c.Source.String(), At: v1.Stamp(c.At), Running: c.Running, Pending: c.Pending}
		if view.SeesAll() {
			j.Rows = make([]v1.CensusRow, len(c.Rows))
			for k := range c.Rows {
				j.Rows[k] = v1.CensusRow(c.Rows[k])
			}
		}
		out.Running, out.Pending = out.Running+c.Running, out.Pending+c.Pending
		out.Sources = append(out.Sources, j)
	}
	return out, nil
}
