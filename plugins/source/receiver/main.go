// Command bursar-source-receiver is the source plugin for what is pushed to AUDITOR:
// it takes the writes of AUDITOR's interface for the agent. See README.md.
package main

import (
	"log/slog"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/source"
)

func main() {
	sdk.ServeSource(func() sdk.Source { return source.New(slog.Default()) })
}
