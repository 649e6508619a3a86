// Package host is the daemon's side of plugins: it finds their binaries, checks
// that no one else can have changed them, starts each as a process of its own,
// connects over gRPC with limits, watches it, and stops it.
//
//	path, err := host.Find(dirs, "source", "slurm")
//	p, err := host.Launch(ctx, host.Spec{Kind: "source", Type: "slurm", Path: path, Logger: log})
//	defer p.Close()
//	d, err := p.Describe(ctx)
//
// A Supervisor keeps one plugin running: it restarts with backoff what crashes,
// kills what hangs, and hands out the process that runs now.
//
// Whatever a plugin says is hostile input: its handshake, its messages, its log
// lines and the length of all of these are bounded and checked. No plugin can
// stop the daemon or another plugin.
//
// A Session is a source plugin that runs, with its configuration and the mapping that is
// compiled against what it says of itself. The agent collects through sessions, and
// `bursar import` reads old files through one.
//
// RunProgram runs the programs of actions, those that a Command allows.
package host
