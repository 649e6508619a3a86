package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// verdict is whether all is well.
type verdict struct {
	Head     string
	Tone     string // good, warn or bad
	ToDo     int
	First    *found
	Findings []found
}

// found is something that an operator should know.
type found struct {
	Kind, Tone string
	What, Do   string
	Since      time.Time
}

// currentVerdict judges the cluster now; nil when no one judges.
func (p *Pages) currentVerdict(ctx context.Context) *verdict {
	if p.Health == nil {
		return nil
	}
	report := p.Health(ctx)
	return verdictOf(&report, access.From(ctx).SeesAll())
}

func verdictOf(r *health.Report, seesAll bool) *verdict {
	v := &verdict{ToDo: r.ToDo(), Head: "Healthy.", Tone: "good"}
	for i := range r.Findings {
		f := &r.Findings[i]
		v.Findings = append(v.Findings, found{Kind: string(f.Severity), Tone: toneOf(f.Severity), What: f.WhatFor(seesAll), Do: f.Do, Since: f.Since})
	}
	switch v.ToDo {
	case 0:
		return v
	case 1:
		v.Head = "Needs attention."
	default:
		v.Head = fmt.Sprintf("%d problems.", v.ToDo)
	}
	v.First, v.Tone = &v.Findings[0], v.Findings[0].Tone
	return v
}

func toneOf(s health.Severity) string {
	switch s {
	case health.Critical:
		return "bad"
	case health.Warning:
		return "warn"
	case health.Notice:
	}
	return "dim"
}

// clusterPage is what the page of the cluster shows.
type clusterPage struct {
	Verdict *verdict
	Cluster string
	Leader  string // its name; "": no one leads
	Node    string // that says all this
	Nodes   []nodeLine
	Backup  time.Time
	Figures *v1.Status // nil: unknown
	Config  *v1.Config // nil: unknown, or the reader may not see it
	Differs []nodeLine // nodes whose files differ
	Backups []nodeLine // nodes that make backups
}

// nodeLine is a member in a table.
type nodeLine struct {
	health.Node

	Role, RoleTone string
	Heard          bool
	Free           int // percent of the disk
	DiskTone       string
	Offset         string // of the clock
}

// fillCluster fills the page of the cluster. It needs no one who leads.
func (p *Pages) fillCluster(r *http.Request, f *frame) int {
	if !mayCluster(access.From(r.Context())) {
		f.Problem = "This page is not for you: " + access.ErrDenied.Error() + "."
		return http.StatusForbidden
	}
	if p.Health == nil {
		f.Problem = "Cluster health is not available on this node."
		return http.StatusNotFound
	}
	page := p.localClusterPage(r)
	p.addStatus(r, page)
	f.Content = page
	return http.StatusOK
}

// mayCluster reports whether a reader may see the page of the cluster.
func mayCluster(who access.Principal) bool {
	return who.May(identity.Monitor) || who.May(identity.Read) && who.Rows.All()
}

// localClusterPage is what this node knows of the cluster by itself.
func (p *Pages) localClusterPage(r *http.Request) *clusterPage {
	report := p.Health(r.Context())
	page := &clusterPage{Verdict: verdictOf(&report, access.From(r.Context()).SeesAll()), Cluster: report.Facts.Cluster, Node: report.Facts.Node, Backup: report.Facts.Backup.Last}
	for i := range report.Facts.Nodes {
		page.addNode(lineOfNode(&report, &report.Facts.Nodes[i]))
	}
	for _, list := range [][]nodeLine{page.Nodes, page.Differs, page.Backups} {
		slices.SortStableFunc(list, func(a, b nodeLine) int { return cmp.Compare(a.Name, b.Name) })
	}
	return page
}

// fillOutage fills the overview while no figures can be read: with what this node knows of the
// cluster, where the reader has access to the page of the cluster.
func (p *Pages) fillOutage(r *http.Request, f *frame) {
	if p.Health != nil && mayCluster(access.From(r.Context())) {
		f.Content = &overviewPage{Outage: p.localClusterPage(r)}
	}
}

// addNode adds a node to the tables that it belongs to.
func (p *clusterPage) addNode(n nodeLine) {
	p.Nodes = append(p.Nodes, n)
	if n.Leader {
		p.Leader = n.Name
	}
	if len(n.ConfigDiffers) > 0 || n.ConfigProblem != "" {
		p.Differs = append(p.Differs, n)
	}
	if n.Backup != nil {
		p.Backups = append(p.Backups, n)
	}
}

// addStatus adds what /v1 says of the cluster; the page goes without while it says
// nothing.
func (p *Pages) addStatus(r *http.Request, page *clusterPage) {
	if figures, err := p.V1.Status(r.Context(), nil); err == nil {
		page.Figures = &figures
	}
	if page.Figures == nil || !page.Figures.Confirmed || !mayConfig(r) {
		return // it would have to wait for who leads, or would be refused
	}
	if config, err := p.V1.Config(r.Context()); err == nil && config.Digest != "" {
		page.Config = &config
	}
}

func lineOfNode(r *health.Report, n *health.Node) nodeLine {
	l := nodeLine{Node: *n, Heard: r.Heard(n), Free: int(n.Disk.Share()), Role: "follower", RoleTone: "dim", DiskTone: "good", Offset: "–"}
	switch {
	case !l.Heard:
		l.Role, l.RoleTone = "unreachable", "bad"
	case n.Fenced != "":
		l.Role, l.RoleTone = "fenced", "bad"
	case n.Leader:
		l.Role, l.RoleTone = "leads", "good"
	case !n.Voter:
		l.Role = "joins"
	}
	switch n.Disk.Level {
	case health.LevelWarn:
		l.DiskTone = "warn"
	case health.LevelLow, health.LevelReadOnly:
		l.DiskTone = "bad"
	case health.LevelNormal, health.LevelUnknown:
	}
	if !n.Self && l.Heard {
		l.Offset = fmt.Sprintf("%+.2f s", n.ClockOffset.Seconds())
	}
	return l
}
