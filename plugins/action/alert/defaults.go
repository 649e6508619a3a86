package main

import "time"

// allSeverities are those of alerts, the worst last.
func allSeverities() []string { return []string{"notice", "warning", "critical"} }

// findingKinds are those of bursar status that rules can name.
func findingKinds() []string {
	return []string{
		"action-disabled", "action-failing", "action-partial", "action-paused", "action-rejected", "action-retrying", "action-unknown", "agent-damaged", "agent-silent", "agent-srv", "agents-restored",
		"alert-rule", "alert-undelivered", "backup-fails", "backup-late", "backup-none", "backup-old", "certificate-ends", "certificate-not-renewed", "certificate-refused",
		"clock-apart", "config-differs", "config-disobeyed", "conflicts", "disk-low", "disk-readonly", "disk-stalled", "disk-warn", "gaps",
		"login-provider",
		"no-cluster", "no-leader", "node-behind", "node-fenced", "node-joins", "node-old-copy", "node-silent", "not-conserved", "other-cluster", "peer-address",
		"progress-not-recorded", "pulls-paused", "quarantine", "records-odd", "runs-missing", "source-failing", "source-late", "source-silent", "state-differs", "tokens-restored",
		"two-histories", "two-voters", "unknown", "usage-unindexed", "versions-mixed", "waiting-stops",
	}
}

// runbooks is where the default rules find what to do.
const runbooks = "https://github.com/bursar-accounting/bursar/blob/main/aggregator/RUNBOOKS.md#"

// defaultRules are the rules that defaults = true turns on. README.md has their table.
func defaultRules() []rule {
	number := func(n float64) *float64 { return &n }
	budget := func(name string, used float64, severity string) rule {
		return rule{Name: name, Budget: "*", Used: number(used), Severity: severity, Runbook: runbooks + "a-budget-runs-out"}
	}
	used := func(name string, u usageRule) rule {
		u.Measure, u.Window, u.By = "utilization", "24h", "cluster"
		return rule{Name: name, Usage: &u, For: time.Hour, Severity: "notice", Runbook: runbooks + "a-cluster-is-idle-or-full"}
	}
	list := []rule{
		{Name: "silent-source", Findings: []string{"source-silent", "source-failing", "agent-silent", "agent-damaged"}, For: 5 * time.Minute, Runbook: runbooks + "a-source-is-silent"},
		{Name: "late-source", Findings: []string{"source-late"}, Runbook: runbooks + "a-source-is-silent"},
		{Name: "missing-runs", Findings: []string{"runs-missing"}, Runbook: runbooks + "runs-are-missing"},
		{Name: "gap", Findings: []string{"gaps"}, Runbook: runbooks + "there-is-a-gap-executed"},
		{Name: "quarantine", Findings: []string{"quarantine"}, For: 15 * time.Minute, Runbook: runbooks + "jobs-are-quarantined"},
		{Name: "odd-records", Findings: []string{"records-odd"}, For: 15 * time.Minute, Runbook: runbooks + "records-are-odd"},
		{Name: "conflict", Conflicts: true, Runbook: runbooks + "origins-disagree-about-a-run"},
		budget("budget-75", 75, "notice"), budget("budget-90", 90, "warning"), budget("budget-100", 100, "critical"),
		used("utilization-low", usageRule{Below: number(0.1)}), used("utilization-high", usageRule{Above: number(0.95)}),
		{Name: "certificate", Findings: []string{"certificate-ends", "certificate-not-renewed", "certificate-refused"}, Runbook: runbooks + "certificates-are-renewed-executed"},
		{Name: "backup", Findings: []string{"backup-fails", "backup-late", "backup-old"}, Runbook: runbooks + "a-backup-fails"},
		{Name: "disk", Findings: []string{"disk-warn", "disk-low", "disk-readonly", "disk-stalled"}, For: time.Minute, Runbook: runbooks + "a-disk-is-full-executed"},
		{
			Name: "cluster", For: 2 * time.Minute, Runbook: runbooks + "an-alert-fires",
			Findings: []string{
				"no-leader", "node-silent", "node-behind", "node-fenced", "node-old-copy", "two-histories", "state-differs", "not-conserved", "pulls-paused", "two-voters",
				"clock-apart", "config-disobeyed", "other-cluster", "peer-address",
			},
		},
		{
			Name: "action", For: 5 * time.Minute, Runbook: runbooks + "an-alert-fires",
			Findings: []string{"action-disabled", "action-failing", "action-rejected", "action-retrying", "action-unknown", "alert-rule", "alert-undelivered"},
		},
	}
	for i := range list {
		list[i].lenient = true
	}
	return list
}
