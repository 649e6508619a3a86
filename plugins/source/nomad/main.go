// Command bursar-source-nomad is the source plugin for Nomad: it reads the runs of
// tasks from Nomad's event stream and listings. See README.md.
package main

import (
	"log/slog"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/source"
)

func main() {
	sdk.ServeSource(func() sdk.Source { return source.New(slog.Default()) })
}
