package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Health judges the cluster as this node knows it.
type Health interface {
	// Report gathers the facts now. It waits for no other node.
	Report(ctx context.Context) health.Report
}

func backupJSON(b *health.LocalBackup) *v1.NodeBackup {
	if b == nil {
		return nil
	}
	return &v1.NodeBackup{
		Path: b.Path, EverySeconds: b.Every.Seconds(), Last: v1.Time{Time: b.Last}, Bytes: b.Bytes,
		Error: b.Error, FailingSince: v1.Time{Time: b.Failing}, Failures: b.Failures,
	}
}

// statusPatience is how long a status waits for a picture that a majority
// confirms; without one it says what this node knows.
const statusPatience = 2 * time.Second

// v1Status is GET /v1/status: the verdict, and the cluster in a few numbers. It
// answers on any node, also while no one leads.
func (s *Server) v1Status(w http.ResponseWriter, r *http.Request) {
	r, stale, err := extractConsistency(r)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	out, err := s.statusFigures(r.Context(), w, stale)
	if err != nil && (s.opt.Health == nil || !access.From(r.Context()).May(identity.Monitor)) {
		s.answerError(w, r, err)
		return
	}
	if err != nil { // no majority confirms it: what this node has
		own := &Stale{MaxAge: -1}
		out, err = s.statusFigures(WithStale(r.Context(), own), w, own)
	}
	if s.opt.Health != nil {
		report := s.opt.Health.Report(r.Context())
		if err != nil {
			out = &v1.Status{Version: s.opt.Version, Cluster: report.Facts.Cluster, Agents: []v1.Agent{}}
		}
		out.Verdict = verdictJSON(&report, access.From(r.Context()).SeesAll())
	}
	answerJSON(w, http.StatusOK, out)
}

// statusFigures are the numbers of a picture that a majority confirms, or that is stale.
func (s *Server) statusFigures(ctx context.Context, w http.ResponseWriter, stale *Stale) (*v1.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	view, err := s.opt.Reader.Read(ctx, access.From(ctx))
	if err != nil {
		return nil, err
	}
	defer s.closeView(view)
	odd, err := view.Figures()
	if err != nil {
		return nil, err
	}
	records, err := view.Count()
	if err != nil {
		return nil, err
	}
	agents, err := s.listAgents(ctx, view)
	if err != nil {
		return nil, err
	}
	retention, err := s.retentionState(view)
	if err != nil {
		return nil, err
	}
	index, term := view.Applied()
	id, version := view.Cluster()
	w.Header().Set("X-Bursar-Index", strconv.FormatUint(index, 10))
	stale.setHeaders(w.Header(), index)
	return &v1.Status{
		Version: s.opt.Version, Cluster: id, ClusterVersion: new(int(version)), Index: &index, Term: &term, Hash: view.Hash().String(), Confirmed: stale == nil, AgeSeconds: stale.ageSeconds(),
		Records: &records, LastChange: new(view.Seq()), Quarantined: &odd.Quarantined, Conflicts: &odd.Conflicts, WaitingStops: &odd.Waiting, Agents: agents, Retention: retention,
	}, nil
}

// verdictJSON is what a report adds to the status; only who sees all records is told the texts
// of failures.
func verdictJSON(r *health.Report, seesAll bool) *v1.Verdict {
	findings := []v1.Finding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		findings = append(findings, v1.Finding{Severity: string(f.Severity), ID: f.ID, About: f.About, What: f.WhatFor(seesAll), Do: f.Do, Since: v1.Time{Time: f.Since}})
	}
	return &v1.Verdict{
		Node: r.Facts.Node, State: string(r.State), Findings: findings, Nodes: nodesJSON(r), LastSnapshot: v1.Time{Time: r.Facts.Backup.Last},
	}
}

func nodesJSON(r *health.Report) []v1.Node {
	list := []v1.Node{}
	for i := range r.Facts.Nodes {
		n := &r.Facts.Nodes[i]
		j := v1.Node{
			Name: n.Name, ID: n.ID, Address: n.Address, ListedAddress: n.Listed, Role: roleOfNode(n), Voter: n.Voter, Self: n.Self, Heard: r.Heard(n), LastContact: v1.Time{Time: n.Seen},
			AppliedIndex: n.Applied, Version: n.Version, DiskFreeBytes: n.Disk.Free, DiskSizeBytes: n.Disk.Size, DiskLevel: string(n.Disk.Level), BallastBytes: n.Disk.Ballast,
			ClockOffsetSeconds: n.ClockOffset.Seconds(), Hash: n.Hash, HashIndex: n.HashIndex, Fenced: n.Fenced, Paused: n.Paused, ConfigDiffers: n.ConfigDiffers,
			CertificateUntil: v1.Time{Time: n.CertEnds}, Backup: backupJSON(n.Backup),
		}
		if n.LagKnown && j.Heard {
			j.Behind = &n.Lag
		}
		if !n.Seen.IsZero() {
			j.AgeSeconds = new(max(r.Facts.Now.Sub(n.Seen), 0).Seconds())
		}
		if j.ConfigDiffers == nil {
			j.ConfigDiffers = []string{}
		}
		list = append(list, j)
	}
	return list
}

// roleOfNode is what a node does in the cluster, in a word.
func roleOfNode(n *health.Node) string {
	switch {
	case n.Leader:
		return "leader"
	case n.Voter:
		return "follower"
	}
	return "joins"
}

// v1Cluster is GET /v1/cluster: the nodes, as this one knows them.
func (s *Server) v1Cluster(w http.ResponseWriter, r *http.Request) {
	if s.opt.Health == nil {
		answerProblem(w, http.StatusNotFound, "this node does not watch its cluster")
		return
	}
	if who := access.From(r.Context()); !who.May(identity.Monitor) && (!who.May(identity.Read) || !who.Rows.All()) {
		s.answerError(w, r, access.ErrDenied)
		return
	}
	report := s.opt.Health.Report(r.Context())
	answerJSON(w, http.StatusOK, v1.ClusterNodes{
		Cluster: report.Facts.Cluster, Node: report.Facts.Node, Leader: leaderOf(&report.Facts), Nodes: nodesJSON(&report),
	})
}

// leaderOf is the name of the node that leads, its id where the name is unknown.
func leaderOf(f *health.Facts) v1.Text {
	name := f.Leader
	for i := range f.Nodes {
		if f.Nodes[i].ID == f.Leader {
			name = f.Nodes[i].Name
		}
	}
	return v1.Text(name)
}
