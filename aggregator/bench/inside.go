package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/hcl"
)

// inside is an aggregator inside this program, for a profile.
type inside struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func (n *nodeSite) runInside(ctx context.Context) error {
	log := newJournal()
	leads := log.expectLine(leadsWord)
	d := &daemon.Daemon{Log: log, Version: "bench", Load: func() (*config.Config, hcl.Diagnostics) {
		conf, _, diags := config.Load(n.configText())
		return conf, diags
	}}
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.inside = &inside{cancel: cancel, done: make(chan struct{})}
	go func(in *inside) {
		defer close(in.done)
		in.err = d.Run(alive)
	}(n.inside)
	return n.awaitLeading(ctx, leads, n.inside.done, func() error { return n.inside.err })
}

func (in *inside) stopNode() error {
	in.cancel()
	<-in.done
	return in.err
}

// startProfile writes a profile of what happens until the returned function is
// called.
func (b *bench) startProfile(name string) (stop func() error, err error) {
	if b.profile == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(b.profile, 0o750); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(b.profile, name+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
