package api

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Health judges the cluster as this node knows it.
type Health interface {
	// Report gathers the facts now. It waits for no other node.
	Report(ctx context.Context) health.Report
}

type jsonFinding struct {
	Severity string  `json:"severity"`
	ID       string  `json:"id"`
	About    string  `json:"about"`
	What     string  `json:"what"`
	Do       string  `json:"do"`
	Since    *string `json:"since"`
}

type jsonNode struct {
	Name        string   `json:"name"`
	ID          string   `json:"id"`
	Address     string   `json:"address"`
	Role        string   `json:"role"`
	Voter       bool     `json:"voter"`
	Self        bool     `json:"self"`
	Heard       bool     `json:"heard"`
	LastContact *string  `json:"last_contact"`
	Applied     uint64   `json:"applied_index"`
	Behind      *uint64  `json:"behind"`
	Version     string   `json:"version"`
	DiskFree    uint64   `json:"disk_free_bytes"`
	DiskSize    uint64   `json:"disk_size_bytes"`
	DiskLevel   string   `json:"disk_level"`
	Ballast     uint64   `json:"ballast_bytes"`
	ClockOffset float64  `json:"clock_offset_seconds"`
	Hash        string   `json:"hash"`
	HashIndex   uint64   `json:"hash_index"`
	Fenced      string   `json:"fenced"`
	Paused      string   `json:"paused"`
	Differs     []string `json:"config_differs"`
	CertUntil   *string  `json:"certificate_until"`

	Backup *jsonBackup `json:"backup"`
}

// jsonBackup says how the backups are doing that a node makes by itself.
type jsonBackup struct {
	Path     string  `json:"path"`
	Every    float64 `json:"every_seconds"`
	Last     *string `json:"last"`
	Bytes    int64   `json:"bytes"`
	Error    string  `json:"error"`
	Failing  *string `json:"failing_since"`
	Failures uint64  `json:"failures"`
}

func backupJSON(b *health.LocalBackup) *jsonBackup {
	if b == nil {
		return nil
	}
	return &jsonBackup{b.Path, b.Every.Seconds(), stampStd(b.Last), b.Bytes, b.Error, stampStd(b.Failing), b.Failures}
}

// statusPatience is how long a status waits for a picture that a majority
// confirms; without one it says what this node knows.
const statusPatience = 2 * time.Second

// v1Status is GET /v1/status: the verdict, and the cluster in a few numbers. It
// answers on any node, also while nobody leads.
func (s *Server) v1Status(w http.ResponseWriter, r *http.Request) {
	r, stale, err := consistency(r)
	if err != nil {
		s.refused(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), statusPatience)
	defer cancel()
	out, err := s.figures(ctx, w, stale)
	if err != nil && (s.opt.Health == nil || !access.From(ctx).May(identity.Monitor)) {
		s.refused(w, r, err)
		return
	}
	if s.opt.Health != nil {
		report := s.opt.Health.Report(r.Context())
		if out == nil {
			out = localFigures(&report.Facts)
			out["version"] = s.opt.Version
		}
		maps.Copy(out, verdict(&report))
	}
	answer(w, http.StatusOK, out)
}

// figures are the numbers of a picture that a majority confirms.
func (s *Server) figures(ctx context.Context, w http.ResponseWriter, stale *Stale) (map[string]any, error) {
	view, err := s.opt.Reader.Read(ctx, access.From(ctx))
	if err != nil {
		return nil, refuse(http.StatusServiceUnavailable, "the cluster cannot answer now: %v", err)
	}
	defer s.close(view)
	odd, err := view.Figures()
	if err != nil {
		return nil, err
	}
	records, err := view.Count(ctx)
	if err != nil {
		return nil, err
	}
	agents, err := s.agents(ctx, view)
	if err != nil {
		return nil, err
	}
	index, term := view.Applied()
	id, version := view.Cluster()
	w.Header().Set("X-Bursar-Index", strconv.FormatUint(index, 10))
	stale.header(w.Header(), index)
	return map[string]any{
		"version": s.opt.Version, "cluster": id, "cluster_version": version, "index": index, "term": term, "hash": view.Hash().String(), "confirmed": stale == nil,
		"records": records, "last_change": view.Seq(), "quarantined": odd.Quarantined, "conflicts": odd.Conflicts, "waiting_stops": odd.Waiting, "agents": agents,
	}, nil
}

// localFigures are those of this node alone.
func localFigures(f *health.Facts) map[string]any {
	agents := []*jsonAgent{}
	for _, a := range f.Agents {
		agents = append(agents, &jsonAgent{
			Name: a.Name, Address: a.Address, Configured: true, Connected: a.Connected, Error: a.Error, Remedy: a.Remedy, LastContact: stampStd(a.Contact), Behind: a.Behind, Sources: []jsonSource{},
		})
	}
	d := &f.Data
	return map[string]any{
		"cluster": f.Cluster, "cluster_version": 0, "index": d.Index, "term": 0, "hash": "", "confirmed": false,
		"records": d.Records, "last_change": 0, "quarantined": d.Quarantined, "conflicts": d.Conflicts, "waiting_stops": d.Waiting, "agents": agents,
	}
}

// verdict is what a report adds to the status.
func verdict(r *health.Report) map[string]any {
	findings := []jsonFinding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		findings = append(findings, jsonFinding{string(f.Severity), f.ID, f.About, f.What, f.Do, stampStd(f.Since)})
	}
	return map[string]any{
		"node": r.Facts.Node, "state": string(r.State), "findings": findings, "nodes": nodesJSON(r), "last_snapshot": stampStd(r.Facts.Backup.Last),
	}
}

func nodesJSON(r *health.Report) []jsonNode {
	list := []jsonNode{}
	for i := range r.Facts.Nodes {
		n := &r.Facts.Nodes[i]
		j := jsonNode{
			Name: n.Name, ID: n.ID, Address: n.Address, Role: role(n), Voter: n.Voter, Self: n.Self, Heard: r.Heard(n), LastContact: stampStd(n.Seen),
			Applied: n.Applied, Version: n.Version, DiskFree: n.Disk.Free, DiskSize: n.Disk.Size, DiskLevel: string(n.Disk.Level), Ballast: n.Disk.Ballast,
			ClockOffset: n.ClockOffset.Seconds(), Hash: n.Hash, HashIndex: n.HashIndex, Fenced: n.Fenced, Paused: n.Paused, Differs: n.ConfigDiffers,
			CertUntil: stampStd(n.CertEnds), Backup: backupJSON(n.Backup),
		}
		if n.LagKnown {
			j.Behind = &n.Lag
		}
		if j.Differs == nil {
			j.Differs = []string{}
		}
		list = append(list, j)
	}
	return list
}

// role is what a node does in the cluster, in a word.
func role(n *health.Node) string {
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
		fail(w, http.StatusNotFound, "this node does not watch its cluster")
		return
	}
	if who := access.From(r.Context()); !who.May(identity.Monitor) && (!who.May(identity.Read) || !who.Rows.All()) {
		s.refused(w, r, access.ErrDenied)
		return
	}
	report := s.opt.Health.Report(r.Context())
	answer(w, http.StatusOK, map[string]any{
		"cluster": report.Facts.Cluster, "node": report.Facts.Node, "leader": leaderOf(&report.Facts), "nodes": nodesJSON(&report),
	})
}

// leaderOf is the name of the node that leads, its id where the name is unknown.
func leaderOf(f *health.Facts) *string {
	if f.Leader == "" {
		return nil
	}
	name := f.Leader
	for i := range f.Nodes {
		if f.Nodes[i].ID == f.Leader {
			name = f.Nodes[i].Name
		}
	}
	return &name
}
