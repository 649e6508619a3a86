// Command pages writes the manual pages of the agent and of plugins, and what
// completes the agent's command line in a shell:
//
//	go run ./agent/packaging/pages DIR [FOLDER OF A PLUGIN]...
//
// It runs at the top of the repository. For the package of each plugin it also
// writes NAME.summary, a line.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bursar-accounting/bursar/agent/internal/cli"
	"github.com/bursar-accounting/bursar/proto/manual"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: pages DIR [FOLDER OF A PLUGIN]...")
		os.Exit(2)
	}
	if err := writePages(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

const more = `# FILES

**/etc/bursar/agent.hcl**
: the configuration, bursar-agent.hcl(5)

**/var/lib/bursar-agent**
: the buffer, the folders of the sources, and the control socket agent.sock

**/usr/libexec/bursar/plugins**
: the plugins, bursar-source-slurm(8) and others

**/etc/default/bursar-agent**, **/etc/sysconfig/bursar-agent**
: variables for env() in the configuration, where systemd starts the agent

# EXIT STATUS

**0**
: all is well

**1**
: an error

**2**
: it worked and found something

**78**
: the daemon refused its configuration; systemd does not start it again

# SEE ALSO

bursar-agent.hcl(5), bursar(1)
`

func writePages(dir string, plugins []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	example, err := os.ReadFile("hcl/examples/agent.hcl")
	if err != nil {
		return err
	}
	language, err := os.ReadFile("hcl/README.md")
	if err != nil {
		return err
	}
	root := cli.Commands()
	settings := manual.Settings("bursar-agent.hcl", "configuration of the bursar agent", "The agent reads /etc/bursar/agent.hcl", string(example), string(language))
	errs := []error{manual.Commands(root, 8, more).Write(dir), settings.Write(dir), manual.Completion(root, dir)}
	errs = append(errs, writeEpilogPage(dir))
	for _, p := range plugins {
		errs = append(errs, writePluginPage(dir, p))
	}
	return errors.Join(errs...)
}

// writeEpilogPage writes the page of the program that Slurm calls.
func writeEpilogPage(dir string) error {
	readme, err := os.ReadFile("plugins/source/slurm-epilog/cmd/bursar-epilog/README.md")
	if err != nil {
		return err
	}
	return manual.Readme("bursar-epilog", string(readme)).Write(dir)
}

// writePluginPage writes the page of a plugin from its README.
func writePluginPage(dir, folder string) error {
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("bursar-%s-%s", filepath.Base(filepath.Dir(folder)), filepath.Base(folder))
	page := manual.Readme(name, string(readme))
	summary := []byte(page.Short + "\n")
	return errors.Join(page.Write(dir), os.WriteFile(filepath.Join(dir, name+".summary"), summary, 0o644)) //nolint:gosec // for everybody
}
