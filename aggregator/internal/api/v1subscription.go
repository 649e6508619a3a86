package api

import (
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/directory"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

type jsonSubscription struct {
	Index       uint64          `json:"index"`
	Window      jsonWindow      `json:"window"`
	Zone        string          `json:"zone"`
	Credit      string          `json:"credit"`
	Unit        string          `json:"unit"`
	Used        json.Number     `json:"used"`
	Contributed json.Number     `json:"contributed"`
	Unclaimed   json.Number     `json:"unclaimed"`
	Unpriced    []jsonUnpriced  `json:"unpriced"`
	Shares      []jsonShare     `json:"shares"`
	Complete    json.RawMessage `json:"complete"`
}

type jsonWindow struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type jsonUnpriced struct {
	Component string      `json:"component"`
	Total     json.Number `json:"total"`
}

type jsonShare struct {
	PI                string       `json:"pi"`
	Name              *string      `json:"name"`
	State             string       `json:"state"`
	Used              json.Number  `json:"used"`
	ExemptUsed        json.Number  `json:"exempt_used"`
	UsedShare         *json.Number `json:"used_share"`
	Contributed       json.Number  `json:"contributed"`
	ContributionShare *json.Number `json:"contribution_share"`
	Ratio             *json.Number `json:"ratio"`
}

// v1Subscription is GET /v1/subscription: what principal investigators used beside
// what is credited to them. Shares of a part of the records would be none.
func (s *Server) v1Subscription(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	words, err := fieldsOf(r.URL.RawQuery, "window", "from", "to", "zone", "credit")
	if err != nil {
		return err
	}
	q, zone, err := subscriptionWindow(words, s.now())
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	d, err := s.directory()
	if err != nil {
		return err
	}
	known, err := s.completeness(view, calendar.Window{From: q.Edges[0], To: q.Edges[1]}, q.Now)
	if err != nil {
		return err
	}
	sub, err := d.Subscription(r.Context(), s.ask, q)
	if errors.Is(err, usage.ErrQuestion) {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	if err != nil {
		return err
	}
	out := describeSubscription(sub)
	out.Zone, out.Credit = zone, "spread"
	if q.Credit == usage.AtStop {
		out.Credit = "stop"
	}
	known.Open = sub.Open
	if out.Complete, err = json.Marshal(known); err != nil {
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
}

// subscriptionWindow reads the time of a query; without one it is this month.
func subscriptionWindow(words map[string]string, now record.Time) (q usage.Question, name string, err error) {
	zone, err := calendar.Zone(words["zone"])
	if err != nil {
		return q, "", err
	}
	u := usageWords{}
	for _, field := range []string{"window", "from", "to"} {
		u[field] = []string{words[field]}
	}
	if words["window"] == "" && words["from"] == "" && words["to"] == "" {
		u["window"] = []string{"this-month"}
	}
	var times usageQuery
	times.Zone, times.Now = zone, now
	if err := times.window(u); err != nil {
		return q, "", err
	}
	q = usage.Question{Edges: []record.Time{times.Window.From, times.Window.To}, Now: now}
	switch words["credit"] {
	case "", "spread":
	case "stop":
		q.Credit = usage.AtStop
	default:
		return q, "", errors.New("credit is neither spread nor stop")
	}
	return q, zone.String(), nil
}

func describeSubscription(s *directory.Subscription) *jsonSubscription {
	out := &jsonSubscription{
		Index: s.Index, Window: jsonWindow{s.From.String(), s.To.String()}, Unit: s.Unit,
		Used: decimals(s.Used), Contributed: decimals(s.Contributed), Unclaimed: decimals(s.Unclaimed), Unpriced: []jsonUnpriced{}, Shares: []jsonShare{},
	}
	for _, component := range slices.Sorted(maps.Keys(s.Lacking)) {
		out.Unpriced = append(out.Unpriced, jsonUnpriced{component, decimals(s.Lacking[component])})
	}
	for i := range s.Shares {
		sh := &s.Shares[i]
		line := jsonShare{
			PI: sh.PI, Name: noneIfEmpty(sh.Name), State: string(sh.State), Used: decimals(sh.Used), ExemptUsed: decimals(sh.ExemptUsed), Contributed: decimals(sh.Contributed),
			UsedShare: quotient(sh.Used, s.Used), ContributionShare: quotient(sh.Contributed, s.Contributed),
		}
		if sh.Ratio != nil {
			n := decimals(sh.Ratio)
			line.Ratio = &n
		}
		out.Shares = append(out.Shares, line)
	}
	return out
}

// quotient is nil where there is none.
func quotient(a, b *big.Rat) *json.Number {
	if b.Sign() == 0 {
		return nil
	}
	n := decimals(new(big.Rat).Quo(a, b))
	return &n
}
