// Command bursar-source-slurm-epilog is the source plugin for Slurm's epilogs: the
// program bursar-epilog tells it that a run has ended. See README.md.
package main

import (
	"log/slog"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/source"
)

func main() {
	sdk.ServeSource(func() sdk.Source { return source.New(slog.Default()) })
}
