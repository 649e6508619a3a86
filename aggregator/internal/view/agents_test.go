package view_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// someAgents are agents in each state.
func someAgents() v1.Agents {
	yes, no, behind, none := true, false, uint64(12), uint64(0)
	slurm := func(s v1.AgentSource) []v1.AgentSource {
		s.Type, s.Label, s.Counts.Conserved = "slurm", "nemo", true
		return []v1.AgentSource{s}
	}
	return v1.Agents{Agents: []v1.Agent{
		{Name: "busy", Address: "busy:7070", Configured: true, Connected: &yes, Behind: &behind, LastContact: march(9), LastFrames: march(8), Gaps: 3, Sources: append(
			slurm(v1.AgentSource{State: "collecting", CompleteTo: march(7), Gaps: 2, Quarantined: 1, Counts: v1.Counts{Pulled: 9, Added: 7, Conflicting: 1, Quarantined: 1}}), v1.AgentSource{Counts: v1.Counts{Pulled: 5, Added: 4}})},
		{Name: "failing", DialsIn: true, Configured: true, Connected: &yes, Behind: &none, Sources: slurm(v1.AgentSource{State: "failed", Error: "no sacct", Silent: true})},
		{Name: "silent", Configured: true, Connected: &yes, Behind: &none, Sources: slurm(v1.AgentSource{State: "waiting", Silent: true, CompleteTo: march(7)})},
		{Name: "calm", Configured: true, Connected: &yes, Behind: &none, Sources: slurm(v1.AgentSource{State: "waiting"})},
		{Name: "gone", Configured: true, Connected: &no, Error: "no route to host", LastFrames: march(8), Sources: slurm(v1.AgentSource{})},
		{Name: "broken", Configured: true, Connected: &no, Error: "damaged", Remedy: "mv b b.damaged"},
		{Name: "new", Joined: true, Gaps: 1},
		{Name: "young", Configured: true, Connected: &no},
		{Name: "ai4", Import: true, Sources: slurm(v1.AgentSource{State: "waiting"})},
		{Name: "unasked", Error: "no leader is known", Sources: slurm(v1.AgentSource{Quarantined: 1, Counts: v1.Counts{Quarantined: 2}})},
	}}
}

func TestAgents_EachState_IsSaidWithItsReason(t *testing.T) {
	wantExactList(t, view.Agents(someAgents(), "Europe/Berlin"), `agent|address|state|last_contact|behind|gaps|source|source_state|records|quarantined|source_gaps|complete_to
busy|busy:7070|catching up|2026-03-01T09:00:00Z|12|3|slurm/nemo|collecting|7|1|2|2026-03-01T07:00:00Z
busy|busy:7070|catching up|2026-03-01T09:00:00Z|12|3|pushed||4|0|0|
failing|dials in|up to date||0|0|slurm/nemo|failing|0|0|0|
silent||up to date||0|0|slurm/nemo|silent|0|0|0|2026-03-01T07:00:00Z
calm||up to date||0|0|slurm/nemo|waiting|0|0|0|
gone||unreachable|2026-03-01T08:00:00Z||0|slurm/nemo||0|0|0|
broken||damaged|||0|||||0|
new||not configured|||1|||||1|
young||connecting|||0|||||0|
ai4||import|||0|slurm/nemo||0|0|0|
unasked||unknown|||0|slurm/nemo||0|1|0|
bad: failing/slurm/nemo is failing: no sacct. []
bad: gone is unreachable: no route to host. []
bad: broken is damaged: damaged. [mv b b.damaged]
bad: The state of unasked is unknown: no leader is known. []
busy: 3 gaps in its data; see bursar gaps -agent busy
silent: slurm/nemo is silent for longer than usual; it is complete to 2026-03-01 08:00:00
new: it joined by a token, and the leader does not pull from it yet
new: 1 gap in its data; see bursar gaps -agent new
The backlog is the number of frames that the cluster has not received yet.`)
	if l := view.Agents(v1.Agents{}, ""); len(l.Rows)+len(l.Notes) != 0 || !strings.HasPrefix(l.Empty, "No agent is configured.") {
		t.Error(spellOutList(l))
	}
}

func TestSources_WorstState_IsThatOfTheSource(t *testing.T) {
	known := &v1.Usage{}
	known.Complete.Missing = []v1.CompleteMissing{{Source: "calm/slurm/nemo", Runs: 2}, {Source: "calm/slurm/nemo", Runs: 3}, {Source: "busy/slurm/nemo", Runs: 1}}
	wantExactList(t, view.Sources(someAgents(), known), `source|state|last_contact|backlog|complete_to|missing_runs
busy/slurm/nemo|incomplete|2026-03-01T09:00:00Z|12|2026-03-01T07:00:00Z|1
busy/pushed|catching up|2026-03-01T09:00:00Z|12||0
failing/slurm/nemo|failing||0||0
silent/slurm/nemo|silent||0|2026-03-01T07:00:00Z|0
calm/slurm/nemo|incomplete||0||5
gone/slurm/nemo|unreachable|2026-03-01T08:00:00Z|||0
broken|damaged||||
new|not configured||||
young|connecting||||
ai4/slurm/nemo|import||||0
unasked/slurm/nemo|unknown||||0
bad: failing/slurm/nemo is failing: no sacct. []
bad: gone is unreachable: no route to host. []
bad: broken is damaged: damaged. [mv b b.damaged]
bad: The state of unasked is unknown: no leader is known. []`)
	if l := view.Sources(someAgents(), nil); l.Rows[0][5].Known() {
		t.Error("without an answer about the window it is known how many runs are missing")
	}
}

func TestIngestResults_SumsThatDoNotAddUp_AreNamed(t *testing.T) {
	a := someAgents()
	a.Agents = a.Agents[:1]
	wantExactList(t, view.IngestResults(a), `source|pulled|added|merged|unchanged|stale|withdrawn|deleted|conflicting|quarantined
busy/slurm/nemo|9|7|0|0|0|0|0|1|1
busy/pushed|5|4|0|0|0|0|0|0|0
Pulled is the sum of the other columns.
The figures of busy/pushed do not add up, which must never happen: please report it.`)
}
