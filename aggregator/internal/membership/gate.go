package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// Errors about versions.
var (
	// ErrVersion is wrapped by the error of [Gate.Check] for a command that not
	// all members can apply yet.
	ErrVersion = errors.New("not all nodes can do this yet")
	// ErrProgramTooOld is wrapped by the error of [TooOld].
	ErrProgramTooOld = errors.New("this program is too old for its data")
)

// TooOld returns an error that wraps [ErrProgramTooOld] when a program that can apply commands up to version
// own must not start on the state of a cluster of that version.
func TooOld(own, cluster uint32) error {
	if cluster <= own {
		return nil
	}
	return fmt.Errorf("%w: the cluster writes commands of version %d, and this program knows them up to %d; install the version of bursar that ran here before, or a newer one (a cluster cannot go back once all of its nodes have run the newer one)", ErrProgramTooOld, cluster, own)
}

// GateOptions are what a [Gate] needs.
type GateOptions struct {
	Own     uint32        // the protocol version that this program can apply
	Cluster func() uint32 // the version that the cluster has agreed on; 0 is 1
	Peers   Peers
	Writer  Writer
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Every is how often the leader looks; 0 means a second.
	Every time.Duration
}

// Gate lets a command of a newer version pass once all members can apply it.
type Gate struct {
	opt  GateOptions
	turn sync.Mutex // of raising the version
}

// NewGate makes a gate.
func NewGate(opt GateOptions) *Gate {
	opt.Every = cmp.Or(opt.Every, defaultLook)
	g := &Gate{opt: opt}
	opt.Metrics.MustRegister(
		newGauge("bursar_cluster_version", "The protocol version that the cluster has agreed on.", func() float64 { return float64(g.agreedVersion()) }),
		newGauge("bursar_command_version", "The greatest version of a command that this program can apply.", func() float64 { return float64(opt.Own) }),
	)
	return g
}

// agreedVersion is the protocol version that may be proposed.
func (g *Gate) agreedVersion() uint32 { return max(1, g.opt.Cluster()) }

// Check returns an error that wraps [ErrVersion] for a command of a version that
// the cluster has not agreed on.
func (g *Gate) Check(version uint32) error {
	if agreed := g.agreedVersion(); version > agreed {
		return fmt.Errorf("%w: it takes commands of version %d, and the cluster has agreed on %d; it continues by itself when every node runs the new version", ErrVersion, version, agreed)
	}
	return nil
}

// Lead raises the cluster's version as soon as all members can follow, as long
// as this node leads.
func (g *Gate) Lead(ctx context.Context) error {
	repeat.Every(ctx, g.opt.Every, func() bool {
		g.Raise(ctx)
		return true
	})
	return nil
}

// Raise raises the cluster's version now, if all members have said that they can follow.
func (g *Gate) Raise(ctx context.Context) {
	g.turn.Lock() // the first duties of a leader all ask for it
	defer g.turn.Unlock()
	if v := g.commonVersion(); v > g.opt.Cluster() {
		g.raiseVersion(ctx, v)
	}
}

// commonVersion is the greatest version that all members have said they can apply; 0
// while one of them has not been heard.
func (g *Gate) commonVersion() uint32 {
	v := g.opt.Own
	for _, p := range g.opt.Peers.Peers() {
		v = min(v, p.Commands)
	}
	return v
}

func (g *Gate) raiseVersion(ctx context.Context, version uint32) {
	_, err := g.opt.Writer.Write(ctx, &store.SetVersionCommand{Version: version})
	switch {
	case err == nil:
		g.opt.Log.Info("all nodes can apply newer commands: the cluster's version is raised", "version", version)
	case ctx.Err() == nil:
		g.opt.Log.Warn("the cluster's version cannot be raised now", "error", err)
	}
}
