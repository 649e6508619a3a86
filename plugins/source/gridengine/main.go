// Command bursar-source-gridengine is the source plugin for Grid Engine: it follows
// the accounting file. See README.md.
package main

import (
	"log/slog"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/source"
)

func main() {
	sdk.ServeSource(func() sdk.Source { return source.New(slog.Default()) })
}
