// Command bursar-source-htcondor is the source plugin for HTCondor: it reads the history
// of schedds, from files or through condor_history. See README.md.
package main

import (
	"log/slog"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/source"
)

func main() {
	sdk.ServeSource(func() sdk.Source { return source.New(slog.Default()) })
}
