// Command pages writes the manual pages of bursar and what completes its command
// line in a shell:
//
//	go run ./aggregator/packaging/pages DIR
//
// It runs at the top of the repository.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	"github.com/bursar-accounting/bursar/proto/manual"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pages DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

const more = `# FILES

**/etc/bursar/aggregator.hcl**
: the configuration of the aggregator, bursar.hcl(5)

**/var/lib/bursar**
: the state of the aggregator

**/var/lib/bursar-progress**
: how far the node is, so that it notices when its state is an older copy; leave it out of backups

**/usr/libexec/bursar/plugins**
: the plugins of actions, bursar-action-exec(8) and others

**/etc/default/bursar**, **/etc/sysconfig/bursar**
: variables for env() in the configuration, where systemd starts the aggregator

# EXIT STATUS

**0**
: all is well

**1**
: an error

**2**
: it worked and found something

**77**
: the aggregator must not go on, and says why; systemd does not start it again

**78**
: the aggregator refused its configuration; systemd does not start it again

# SEE ALSO

bursar.hcl(5), bursar-agent(8)
`

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	example, err := os.ReadFile("hcl/examples/aggregator.hcl")
	if err != nil {
		return err
	}
	language, err := os.ReadFile("hcl/README.md")
	if err != nil {
		return err
	}
	program := cli.Program{Getenv: func(string) string { return "" }}
	root := program.Commands()
	settings := manual.Settings("bursar.hcl", "configuration of the bursar aggregator", "The aggregator reads /etc/bursar/aggregator.hcl", string(example), string(language))
	return errors.Join(manual.Commands(root, 1, more).Write(dir), settings.Write(dir), manual.Completion(root, dir))
}
