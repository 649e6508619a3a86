package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/convert"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
)

func (p *Program) convertCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "convert FILE…", Short: "Convert configurations of AUDITOR, ai4-accounting and ClusterAccountant",
		Long: `Convert configurations of other accounting systems into bursar's:

  AUDITOR            YAML of the server, of the collectors, and of the priority, APEL
                     and utilization plugins (*.yml, *.yaml)
  ai4-accounting     conf.py, the script or file that sets NOMAD_…, and user-db.json
  ClusterAccountant  a dump of its tables (*.sql), and access.conf

A file base.yml, local.yml or production.yml of AUDITOR lies under the file that the same
program is given, as AUDITOR reads them: give both.

Sources become agent.hcl; all else becomes aggregator.hcl. Settings without an equal are
comments that say why. A table on stderr lists what has another meaning than before.

A file that cannot be converted is left out and named, and so are statements and settings
that are not understood. The exit code is 2 then, and 1 when no file could be converted.`,
		Example: "  bursar config convert /etc/auditor/auditor-slurm-collector.yml > agent.hcl\n  bursar config convert -o /etc/bursar /etc/auditor/*.yml\n  bursar config convert -o new tables.sql /etc/security/access.conf",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return p.convertFiles(args, dir) },
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`directory` for agent.hcl and aggregator.hcl, which must not exist there; made if it is missing")
	return cmd
}

func (p *Program) convertFiles(paths []string, dir string) error {
	var inputs []convert.Input
	var problems []convert.Problem
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			problems = append(problems, convert.Problem{File: path, Message: err.Error()})
			continue
		}
		inputs = append(inputs, convert.Input{Name: path, Text: text})
	}
	out, err := convert.Files(p.Now(), inputs...)
	if err != nil {
		return err
	}
	problems = append(problems, out.Problems...)
	if out.Agent+out.Aggregator == "" && len(problems) == 1 {
		return errors.New(problems[0].String())
	}
	for _, problem := range problems {
		p.say("%s", problem)
	}
	if out.Agent+out.Aggregator == "" {
		return errors.New("no file could be converted")
	}
	if err := p.writeConverted(out, dir); err != nil {
		return err
	}
	if len(problems) > 0 {
		return newFinding("%s; the rest is converted", view.Plural(len(problems), "problem"))
	}
	return nil
}

// writeConverted writes configurations to a folder, or the only one to stdout, and what has
// another meaning to stderr.
func (p *Program) writeConverted(out *convert.Result, dir string) (err error) {
	switch {
	case dir != "":
		if err = os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as packages make it: it has no secrets
			return err
		}
		err = errors.Join(p.createFile(filepath.Join(dir, "agent.hcl"), out.Agent), p.createFile(filepath.Join(dir, "aggregator.hcl"), out.Aggregator))
	case out.Agent != "" && out.Aggregator != "":
		err = errors.New("the files become agent.hcl and aggregator.hcl: give the directory for them with -o")
	default:
		_, err = fmt.Fprint(p.Stdout, out.Agent, out.Aggregator)
	}
	if err != nil || len(out.Changes) == 0 {
		return err
	}
	t := newTable("FILE", "SETTING", "BEFORE", "NOW")
	for _, c := range out.Changes {
		t.addRow(c.File, c.Setting, c.Before, c.Now)
	}
	_, err = t.writeText(p.Stderr, 0, p.Color)
	return err
}

// createFile makes a file that does not exist; an empty one is not made.
func (p *Program) createFile(path, text string) error {
	if text == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // as packages install it: it has no secrets
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		_, err = fmt.Fprintln(p.Stdout, path)
	}
	return err
}
