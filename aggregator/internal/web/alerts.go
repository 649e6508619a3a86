package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// alertsPage is what the page of alerts shows.
type alertsPage struct {
	Alerts  shownTable
	Watched bool // there is an action that watches rules
}

// listAlerts asks for the alerts; false: the server has no action that watches rules.
func (p *Pages) listAlerts(ctx context.Context) (list v1.Alerts, watched bool, err error) {
	actions, err := p.V1.Actions(ctx, nil)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		return list, false, nil
	}
	if err != nil || !slices.ContainsFunc(actions.Actions, func(a v1.Action) bool { return a.Type == "alert" && a.Configured }) {
		return list, false, err
	}
	list, err = p.V1.Alerts(ctx, nil)
	return list, true, err
}

func (p *Pages) alertsContent(r *http.Request) (any, error) {
	list, watched, err := p.listAlerts(r.Context())
	return &alertsPage{p.showList(view.Alerts(list), len(list.Alerts), v1.AlertsAddress(nil, "csv")), watched}, err
}

// alertsTile says how many alerts fire; there is none where no rules are watched.
func (p *Pages) alertsTile(ctx context.Context) []tile {
	list, watched, err := p.listAlerts(ctx)
	t := tile{Href: "/ui/alerts", Value: "–", Label: "alerts"}
	switch {
	case err != nil:
		t.More = []string{p.lackText(ctx, err)}
		return []tile{t}
	case !watched:
		return nil
	}
	view.SortAlerts(list.Alerts)
	counts := map[string]int{}
	for i := range list.Alerts {
		a := &list.Alerts[i]
		counts[a.State]++
		if a.State == "firing" && i == 0 {
			t.More = append(t.More, strings.TrimSpace(a.Rule+" "+a.About))
		}
	}
	t.Value, t.Label = strconv.Itoa(counts["firing"]), "alerts fire"
	switch counts["firing"] {
	case 0:
		t.Label = "alerts"
	case 1:
		t.Label, t.Tone = "alert fires", "warn"
	default:
		t.Tone = "warn"
	}
	if n := counts["silenced"]; n > 0 {
		t.More = append(t.More, fmt.Sprintf("%d silenced", n))
	}
	return []tile{t}
}
