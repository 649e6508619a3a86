package run

import (
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Status implements control.Agent.
func (a *Agent) Status() control.Status {
	a.mu.Lock()
	name := a.config.Agent.Name.Value
	a.mu.Unlock()
	out := control.Status{Name: name, Version: a.opt.Version, Started: a.started.UTC(), Listen: a.listen, Sources: []control.Source{}}
	stats, err := a.buffer.Stats()
	if err != nil {
		a.opt.Log.Error("read the buffer", "error", err)
	}
	out.Buffer = bufferOf(stats)
	if a.keys != nil {
		out.Certificate = certificateOf(a.keys)
	}
	if a.dialler != nil {
		for _, w := range a.dialler.Ways() {
			out.Dial = append(out.Dial, control.Dial(w))
		}
	}
	for _, s := range a.runningSources() {
		out.Sources = append(out.Sources, sourceOf(s))
	}
	return out
}

func certificateOf(keys *identity.Keys) *control.Certificate {
	leaf := keys.Leaf()
	c := &control.Certificate{Ends: leaf.NotAfter.UTC(), RenewAt: identity.RenewAt(leaf).UTC(), Problem: keys.Unrenewed()}
	if err := keys.Problem(); err != nil {
		c.Problem = "new files are refused: " + err.Error()
	}
	return c
}

func bufferOf(s buffer.Stats) control.Buffer {
	out := control.Buffer{Epoch: hex.EncodeToString(s.Epoch[:]), First: s.First, Last: s.Last, Bytes: s.Bytes, MaxBytes: s.MaxBytes, Clusters: []control.Cluster{}}
	if s.Damage != nil {
		out.Damage, out.Remedy = s.Damage.Error(), s.Damage.Remedy()
	}
	for _, id := range slices.Sorted(maps.Keys(s.Clusters)) {
		out.Clusters = append(out.Clusters, clusterOf(id, s))
	}
	return out
}

func clusterOf(id string, s buffer.Stats) control.Cluster {
	ack := s.Clusters[id]
	if ack.Epoch != s.Epoch {
		return control.Cluster{ID: id, At: ack.At, Behind: s.Last, Away: true}
	}
	return control.Cluster{ID: id, Through: ack.Through, At: ack.At, Behind: s.Last - min(ack.Through, s.Last)}
}

func sourceOf(s *source) control.Source {
	cfg, status := s.currentStatus()
	out := statusOf(cfg, status)
	out.Hangs, _ = s.failureCounts()
	return out
}

func statusOf(cfg *config.Source, status collect.Status) control.Source {
	out := control.Source{
		Type: cfg.Type.Value, Label: cfg.Label.Value, State: status.State, Plugin: status.Version,
		Progress: progressOf(status.Progress), Counts: countsOf(status.Counts), Findings: status.Findings,
	}
	if status.Err != nil {
		out.Error = status.Err.Error()
	}
	if !status.LastSuccess.IsZero() {
		at := status.LastSuccess.UTC()
		out.LastSuccess = &at
	}
	if status.Watermark != record.None {
		at := time.UnixMicro(int64(status.Watermark)).UTC()
		out.CompleteTo = &at
	}
	return out
}

func countsOf(c collect.Counts) control.Counts { return control.Counts(c) }

func progressOf(p *bursarv1.Progress) *control.Progress {
	if p == nil {
		return nil
	}
	return &control.Progress{Done: p.GetDone(), Total: p.GetTotal(), Unit: p.GetUnit(), At: p.GetAt()}
}

func progressOut(p *control.Progress) *bursarv1.Progress {
	if p == nil {
		return nil
	}
	return &bursarv1.Progress{Done: p.Done, Total: p.Total, Unit: p.Unit, At: p.At}
}

// Report implements serve.Reporter.
func (a *Agent) Report(resp *bursarv1.StatusResponse) {
	a.mu.Lock()
	resp.Name = a.config.Agent.Name.Value
	a.mu.Unlock()
	resp.Version = a.opt.Version
	for _, s := range a.runningSources() {
		cfg, status := s.currentStatus()
		resp.Paused = resp.GetPaused() || errors.Is(status.Err, buffer.ErrFull)
		c := status.Counts
		out := &bursarv1.SourceStatus{
			Type: cfg.Type.Value, Label: cfg.Label.Value, PluginVersion: status.Version, State: status.State,
			Jobs:    c.Records + c.Unchanged + c.Filtered + c.Withdrawn + c.Quarantined,
			Records: c.Records, Filtered: c.Filtered + c.Withdrawn, Quarantined: c.Quarantined + c.Refused,
			Skipped: c.Skipped, Unchanged: c.Unchanged, Progress: status.Progress,
		}
		if status.Err != nil {
			out.Error = status.Err.Error()
		}
		out.Interval, out.Findings = status.Interval.Microseconds(), translate.FindingsOut(status.Findings)
		if !status.LastSuccess.IsZero() {
			out.LastSuccess = status.LastSuccess.UnixMicro()
		}
		if status.Watermark != record.None {
			out.Watermark = int64(status.Watermark)
		}
		resp.Sources = append(resp.Sources, out)
	}
}
