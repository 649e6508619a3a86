package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestAlerts_Listed_MostSevereFirstWithWhatFails(t *testing.T) {
	compareList(t, view.Alerts(v1.Alerts{
		Alerts: []v1.Alert{
			{Action: "site", Rule: "gap", State: "silenced", Severity: "critical", What: "2 gaps", Since: midday()},
			{Action: "site", Rule: "backup", About: "agg1", State: "firing", Severity: "warning", What: "it fails", Do: "df -h", Since: midday()},
			{Action: "site", Rule: "budget", About: "atlas", State: "firing", Severity: "critical", What: "it is exhausted", Runbook: "https://example.org/"},
			{Action: "site", Rule: "jobs", State: "pending", Severity: "notice", What: "1 job"},
		},
		Silences:  []v1.AlertSilence{{Action: "site", ID: "k3v9", Match: map[string]string{"rule": "ga*", "about": "x"}, Until: midday(), Author: "anna"}},
		Receivers: []v1.AlertReceiver{{Action: "site", Name: "mail ops", Problem: "550 no", FailingSince: midday()}, {Action: "site", Name: "webhook chat"}},
		Rules:     []v1.AlertRule{{Action: "site", Rule: "money", Problem: "budget not found"}},
	}), `
firing|critical|budget|atlas|?|it is exhausted|?|https://example.org/|alert/site|bad
firing|warning|backup|agg1|2026-03-01 12:00:00|it fails|df -h|?|alert/site|warn
silenced|critical|gap|the cluster|2026-03-01 12:00:00|2 gaps|?|?|alert/site|dim
pending|notice|jobs|the cluster|?|1 job|?|?|alert/site|dim
warn: mail ops has taken no messages of alert/site since 2026-03-01 12:00:00: 550 no. []
warn: Rule money of alert/site has failed: budget not found. []
note: Messages that a receiver does not take are kept and sent later.
Silences:
k3v9|about=x rule=ga*|2026-03-01 12:00:00|anna|?|alert/site|dim`)
	compareList(t, view.Alerts(v1.Alerts{}), "empty: No alert fires.")
}
