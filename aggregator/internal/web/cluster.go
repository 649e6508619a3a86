package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// verdict is whether all is well.
type verdict struct {
	Head     string
	Tone     view.Tone
	ToDo     int
	First    *found
	Findings []found
}

// found is something that an operator should know.
type found struct {
	Kind     string
	Tone     view.Tone
	What, Do string
	Since    time.Time
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
	v := &verdict{ToDo: r.ToDo(), Head: "Healthy.", Tone: view.Good}
	for i := range r.Findings {
		f := &r.Findings[i]
		v.Findings = append(v.Findings, found{Kind: string(f.Severity), Tone: view.ToneOf(string(f.Severity)), What: f.WhatFor(seesAll), Do: f.Do, Since: f.Since})
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

// clusterPage is what the page of the cluster shows.
type clusterPage struct {
	v1.ClusterNodes

	Verdict   *verdict
	Shown     shownTable // of the nodes
	Differs   shownTable // nodes whose files differ
	Snapshots shownTable // nodes that save snapshots by themselves
	Backup    time.Time
	Figures   *v1.Status // nil: unknown
	Config    *v1.Config // nil: unknown, or the reader may not see it
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
	page, err := p.localClusterPage(r)
	if err != nil {
		return p.showFailure(r, f, err)
	}
	p.addStatus(r, page)
	f.Content = page
	return http.StatusOK
}

// mayCluster reports whether a reader may see the page of the cluster.
func mayCluster(who access.Principal) bool {
	return who.May(identity.Monitor) || who.May(identity.Read) && who.Rows.All()
}

// localClusterPage is what this node knows of the cluster by itself.
func (p *Pages) localClusterPage(r *http.Request) (*clusterPage, error) {
	report := p.Health(r.Context())
	nodes, err := p.V1.Cluster(r.Context())
	most := len(nodes.Nodes)
	return &clusterPage{
		ClusterNodes: nodes, Verdict: verdictOf(&report, access.From(r.Context()).SeesAll()), Backup: report.Facts.Backup.Last,
		Shown: p.showList(view.Nodes(nodes), most, v1.ClusterAddress("csv")), Differs: p.showList(view.ConfigDifferences(nodes), most, ""), Snapshots: p.showList(view.Snapshots(nodes), most, ""),
	}, err
}

// fillOutage fills the overview while no figures can be read: with what this node knows of the
// cluster, where the reader has access to the page of the cluster.
func (p *Pages) fillOutage(r *http.Request, f *frame) {
	if p.Health == nil || !mayCluster(access.From(r.Context())) {
		return
	}
	if page, err := p.localClusterPage(r); err == nil {
		f.Content = &overviewPage{Outage: page}
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
