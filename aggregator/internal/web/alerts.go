package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// alertsPage is what the page of alerts shows.
type alertsPage struct {
	Alerts    []alertView
	Silences  []silenceView
	Receivers []v1.AlertReceiver // those that take nothing
	Rules     []v1.AlertRule
	Watched   bool // there is an action that watches rules
}

// alertView is an alert as the pages show it.
type alertView v1.Alert

func viewAlert(a v1.Alert) alertView { return alertView(a) }

// Tone is the colour of the alert.
func (a *alertView) Tone() string {
	switch {
	case a.State != "firing":
		return "dim"
	case a.Severity == "critical":
		return "bad"
	}
	return "warn"
}

// Link reports whether the runbook is an address that a browser can open.
func (a *alertView) Link() bool {
	return strings.HasPrefix(a.Runbook, "https://") || strings.HasPrefix(a.Runbook, "http://")
}

// silenceView is a silence as the pages show it.
type silenceView v1.AlertSilence

func viewSilence(q v1.AlertSilence) silenceView { return silenceView(q) }

// Matchers are those of the silence in a line.
func (q *silenceView) Matchers() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(q.Match)) {
		parts = append(parts, key+"="+q.Match[key])
	}
	return strings.Join(parts, " ")
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

// sortBySeverity puts what fires first, the most severe at the top.
func sortBySeverity(list []v1.Alert) {
	order := func(a v1.Alert) int {
		return 4*slices.Index([]string{"firing", "silenced", "pending"}, a.State) + slices.Index([]string{"critical", "warning", "notice"}, a.Severity)
	}
	slices.SortStableFunc(list, func(a, b v1.Alert) int { return cmp.Compare(order(a), order(b)) })
}

func (p *Pages) alertsContent(r *http.Request) (any, error) {
	list, watched, err := p.listAlerts(r.Context())
	sortBySeverity(list.Alerts)
	return &alertsPage{
		Alerts: mapViews(list.Alerts, viewAlert), Silences: mapViews(list.Silences, viewSilence), Rules: list.Rules, Watched: watched,
		Receivers: slices.DeleteFunc(list.Receivers, func(r v1.AlertReceiver) bool { return r.Problem == "" }),
	}, err
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
	sortBySeverity(list.Alerts)
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
