// Command bursar-agent collects what every job of a scheduler used and hands it
// to the aggregators.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/bursar-accounting/bursar/agent/internal/cli"
)

// version is set by the linker.
var version string

func main() {
	os.Exit(cli.Main(context.Background(), cli.System(buildVersion()), os.Args[1:]))
}

// buildVersion is the version that the linker has set, or that of the module.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
