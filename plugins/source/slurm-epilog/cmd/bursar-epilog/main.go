// Command bursar-epilog tells bursar's agent that a run of a job has ended. Slurm
// calls it as Epilog on the nodes, or as EpilogSlurmctld. See ../../README.md.
package main

import (
	"os"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/program"
)

// version is set by the linker.
var version = "dev"

func main() {
	p := program.Program{
		Version: version, Getenv: os.Getenv, UID: os.Geteuid(),
		Stdout: os.Stdout, Stderr: os.Stderr, Syslog: program.Syslog, Exit: os.Exit,
	}
	os.Exit(p.Run(os.Args[1:]))
}
