package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// noAgents is said in place of a list of agents without rows.
const noAgents = `No agent is configured. A block agent "NAME" { address = "…" } in aggregator.hcl adds one; records can also be posted as to AUDITOR.`

// Agents lists agents and their sources, a row for each source. Its notices say what is wrong
// with them and what to do, its notes have times by the clock of a zone.
func Agents(a v1.Agents, zone string) List {
	l := List{Name: "agents", Title: "Agents and their sources, with backlog and completeness", Empty: noAgents, Columns: []Column{
		textColumn("agent"), textColumn("address").fitted(LeaveOut), stateColumn("state"), ageColumn("last_contact").fitted(LeaveOut), numberColumn("behind").titled("Backlog").fitted(LeaveOut),
		numberColumn("gaps").titled("Gaps of the agent").fitted(FileOnly), textColumn("source"), stateColumn("source_state").fitted(LeaveOut), numberColumn("records"),
		numberColumn("quarantined").fitted(LeaveOut), numberColumn("source_gaps").titled("Gaps").fitted(LeaveOut), timeColumn("complete_to"),
	}}
	backlog := false
	for i := range a.Agents {
		g := &a.Agents[i]
		backlog = backlog || g.Behind != nil && *g.Behind > 0
		head := []v1.Cell{textCell(g.Name), textCell(agentPlace(g)), textCell(agentState(g)), timeCell(lastContact(g)), knownCount(g.Behind), countCell(g.Gaps)}
		for k := range g.Sources {
			s := &g.Sources[k]
			l.addCells(append(head[:6:6], textCell(sourceName(s)), textCell(sourceState(g, s)), countCell(s.Counts.Added), countCell(s.Quarantined), countCell(s.Gaps), timeCell(s.CompleteTo))...)
		}
		if len(g.Sources) == 0 {
			l.addCells(append(head[:6:6], v1.Cell{}, v1.Cell{}, v1.Cell{}, v1.Cell{}, countCell(g.Gaps), v1.Cell{})...)
		}
		l.addAgentNotes(g, zone)
	}
	if backlog {
		l.addNote("The backlog is the number of frames that the cluster has not received yet.")
	}
	return l
}

// addAgentNotes adds what is wrong with an agent, and what to do.
func (l *List) addAgentNotes(a *v1.Agent, zone string) {
	l.addAgentErrors(a)
	for i := range a.Sources {
		if s := &a.Sources[i]; s.Silent && s.Error == "" {
			l.addNote("%s: %s is silent for longer than usual; it is complete to %s", a.Name, sourceName(s), Instant(s.CompleteTo, zone))
		}
	}
	if a.Joined && !a.Configured {
		l.addNote("%s: it joined by a token, and the leader does not pull from it yet", a.Name)
	}
	if a.Gaps > 0 {
		l.addNote("%s: %s in its data; see bursar gaps -agent %s", a.Name, Plural(a.Gaps, "gap"), a.Name)
	}
}

// addAgentErrors adds the errors of an agent and of its sources, with what to do.
func (l *List) addAgentErrors(a *v1.Agent) {
	if a.Error != "" || a.Remedy != "" {
		what := a.Name + " has a problem"
		switch state := agentState(a); {
		case state == "unknown":
			what = "The state of " + a.Name + " is unknown"
		case ToneOf(state) == Bad:
			what = a.Name + " is " + state
		}
		l.Notices = append(l.Notices, Notice{Tone: Bad, What: what, Why: a.Error, Do: a.Remedy})
	}
	for i := range a.Sources {
		if s := &a.Sources[i]; s.Error != "" {
			l.Notices = append(l.Notices, Notice{Tone: Bad, What: a.Name + "/" + sourceName(s) + " is failing", Why: s.Error})
		}
	}
}

// Sources lists the sources of all agents in short, with how many runs of a window each lacks as
// an answer about it says; nil: that is not known.
func Sources(a v1.Agents, known *v1.Usage) List {
	l := List{Name: "sources", Title: "Sources of records", Empty: noAgents, Columns: []Column{
		textColumn("source"), stateColumn("state"), ageColumn("last_contact"), numberColumn("backlog"), ageColumn("complete_to"), numberColumn("missing_runs"),
	}}
	for i := range a.Agents {
		g := &a.Agents[i]
		state, contact := agentState(g), timeCell(lastContact(g))
		if len(g.Sources) == 0 {
			l.addCells(textCell(g.Name), textCell(state), contact, knownCount(g.Behind), v1.Cell{}, v1.Cell{})
		}
		for k := range g.Sources {
			s := &g.Sources[k]
			name, missing := g.Name+"/"+sourceName(s), v1.Cell{}
			states := []string{state, sourceState(g, s)}
			if known != nil {
				n := missingRuns(known, name)
				if missing = countCell(n); n > 0 {
					states = append(states, "incomplete")
				}
			}
			l.addCells(textCell(name), textCell(worstState(states...)), contact, knownCount(g.Behind), timeCell(s.CompleteTo), missing)
		}
		l.addAgentErrors(g)
	}
	return l
}

// missingRuns is how many runs a source lacks, as an answer says.
func missingRuns(known *v1.Usage, source string) (runs int64) {
	for _, m := range known.Complete.Missing {
		if m.Source == source {
			runs += m.Runs
		}
	}
	return runs
}

// worstState is the first of the states that have the worst tone.
func worstState(states ...string) string {
	for _, tone := range []Tone{Bad, Warn} {
		for _, s := range states {
			if ToneOf(s) == tone {
				return s
			}
		}
	}
	return states[0]
}

// IngestResults lists what became of what each source sent.
func IngestResults(a v1.Agents) List {
	l := List{Name: "ingest", Title: "Ingest results by source", Columns: []Column{
		textColumn("source"), numberColumn("pulled"), numberColumn("added"), numberColumn("merged"), numberColumn("unchanged"), numberColumn("stale"), numberColumn("withdrawn"),
		numberColumn("deleted"), numberColumn("conflicting"), numberColumn("quarantined").titled("Into quarantine"),
	}, Notes: []string{"Pulled is the sum of the other columns."}}
	for i := range a.Agents {
		for k := range a.Agents[i].Sources {
			s := &a.Agents[i].Sources[k]
			name, n := a.Agents[i].Name+"/"+sourceName(s), &s.Counts
			l.addCells(textCell(name), countCell(n.Pulled), countCell(n.Added), countCell(n.Merged), countCell(n.Unchanged), countCell(n.Stale), countCell(n.Withdrawn), countCell(n.Deleted), countCell(n.Conflicting), countCell(n.Quarantined))
			if !n.Conserved {
				l.addNote("The figures of %s do not add up, which must never happen: please report it.", name)
			}
		}
	}
	return l
}

// agentPlace is where an agent listens.
func agentPlace(a *v1.Agent) string {
	if a.DialsIn {
		return "dials in"
	}
	return a.Address
}

// lastContact is when something came from an agent last.
func lastContact(a *v1.Agent) v1.Time {
	if a.LastContact.IsZero() {
		return a.LastFrames
	}
	return a.LastContact
}

// agentState is how an agent is doing, in a word or two.
func agentState(a *v1.Agent) string {
	connected := a.Connected != nil && *a.Connected
	switch {
	case a.Import:
		return "import"
	case a.Connected == nil && a.Error != "": // no leader says
		return "unknown"
	case !a.Configured:
		return "not configured"
	case connected && a.Behind != nil && *a.Behind > 0:
		return "catching up"
	case connected:
		return "up to date"
	case a.Remedy != "":
		return "damaged"
	case a.Error != "":
		return "unreachable"
	}
	return "connecting"
}

// sourceName is the type and the label of a source.
func sourceName(s *v1.AgentSource) string {
	if s.Type == "" && s.Label == "" {
		return "pushed"
	}
	return s.Type + "/" + s.Label
}

// sourceState is how a source of an agent is doing, in a word; empty where that is not known.
func sourceState(a *v1.Agent, s *v1.AgentSource) string {
	switch {
	case a.Import || !a.Configured:
		return ""
	case s.Error != "" || s.State == "failed":
		return "failing"
	case s.Silent:
		return "silent"
	}
	return s.State
}
