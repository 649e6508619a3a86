package run

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/serve"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/hcl/preflight"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Check says all that is wrong with a configuration on this machine: beside what
// [config.Load] found, its certificates, the programs that actions may run, and, by starting them, its plugins with
// their config blocks and mappings, with ports that they would listen on unless the agent
// runs. Beside that it returns what the record blocks change.
func Check(ctx context.Context, cfg *config.Config, p Plugins) ([]control.RecordBlock, hcl.Diagnostics) {
	if cfg.File.Broken {
		return nil, nil // what else seems to be wrong may follow from that
	}
	p.Trial, p.CheckMachine = true, !isRunning(ctx, cfg)
	diags := CheckIdentity(cfg)
	for i := range cfg.Allow {
		diags.Extend(cfg.Allow[i].CheckPrograms(p.Dev))
	}
	openings := p.openAll(ctx, cfg, cfg.Sound())
	defer closeOpenings(openings)
	answered := awaitAnswers(context.WithoutCancel(ctx), openings, 0) // they end with ctx
	diags.Extend(answerDiagnostics(answered))
	diags.Extend(brokenPlugins(answered))
	return recordBlocks(answered), diags
}

// CheckMachine says which folder cannot be used and which port is taken, unless by the
// agent of this configuration.
func CheckMachine(ctx context.Context, cfg *config.Config) hcl.Diagnostics {
	if cfg.Agent.DataDir.Path == "" || isRunning(ctx, cfg) {
		return nil
	}
	diags := preflight.Folder(cfg.Agent.DataDir.Path, cfg.Agent.DataDir.Range)
	if address := cfg.ListenAddress(); address != "" {
		diags.Extend(preflight.Listen(address, cmp.Or(cfg.Agent.Listen.Range, cfg.Agent.TLS.Range)))
	}
	if m := cfg.Agent.Metrics; m != nil {
		diags.Extend(preflight.Listen(m.Listen.String(), m.Listen.Range))
	}
	return diags
}

// isRunning reports whether the agent of the configuration runs.
func isRunning(ctx context.Context, cfg *config.Config) bool {
	return preflight.IsRunning(ctx, cfg.SocketPath())
}

// CheckIdentity says what is wrong with the certificates.
func CheckIdentity(cfg *config.Config) hcl.Diagnostics {
	t := cfg.Agent.TLS
	diags := t.Check()
	if diags.HasErrors() || !t.IsComplete() {
		return diags
	}
	keys, err := identity.Load(cfg.Identity())
	if err != nil {
		diags.Add(hcl.Errorf(t.Range, "invalid certificates", "%v", err))
		return diags
	}
	want := identity.Identity{Role: identity.Agent, Name: cfg.Agent.Name.Value}
	if got, err := keys.Identity(); err != nil {
		diags.Add(hcl.Errorf(t.Cert.Range, "invalid certificate", "%v", err))
	} else if got != want {
		diags.Add(hcl.Errorf(t.Cert.Range, "certificate of another host", "%s is the certificate of %s; this agent is %s, and aggregators would refuse it", t.Cert, got, want))
	}
	return diags
}

// dialTime bounds the trial of all aggregators.
const dialTime = 15 * time.Second

// Dial says how the connections to the aggregators are at which the agent dials in: as the
// agent says, when it runs, and otherwise as a trial of each finds. The certificates are
// those that CheckIdentity has found nothing wrong with.
func Dial(ctx context.Context, cfg *config.Config, status control.Status, running bool) []control.Dial {
	if running {
		return status.Dial
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	list := cfg.DialAddresses()
	out := make([]control.Dial, len(list))
	keys, err := identity.Load(cfg.Identity())
	var all sync.WaitGroup
	for i, address := range list {
		out[i] = control.Dial{Address: address, State: serve.Unreachable}
		if err != nil {
			out[i].Problem = err.Error()
			continue
		}
		all.Go(func() {
			name, err := serve.Try(ctx, address, keys)
			if out[i].Aggregator = name; err != nil {
				out[i].Problem = err.Error()
				return
			}
			out[i].State = serve.Connected
		})
	}
	all.Wait()
	return out
}
