package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/convert"
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

Sources become agent.hcl; all else becomes aggregator.hcl. Settings without an equal are
comments that say why. A table on stderr lists what has another meaning than before.`,
		Example: "  bursar config convert /etc/auditor/auditor-slurm-collector.yml > agent.hcl\n  bursar config convert -o /etc/bursar /etc/auditor/*.yml\n  bursar config convert -o new tables.sql /etc/security/access.conf",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return p.convert(args, dir) },
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`directory` for agent.hcl and aggregator.hcl, which must not exist there; made if it is missing")
	return cmd
}

func (p *Program) convert(paths []string, dir string) error {
	var inputs []convert.Input
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inputs = append(inputs, convert.Input{Name: path, Text: text})
	}
	out, err := convert.Files(p.Now(), inputs...)
	if err != nil {
		return err
	}
	switch {
	case dir != "":
		if err = os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as packages make it: it has no secrets
			return err
		}
		err = errors.Join(p.create(filepath.Join(dir, "agent.hcl"), out.Agent), p.create(filepath.Join(dir, "aggregator.hcl"), out.Aggregator))
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
		t.add(c.File, c.Setting, c.Before, c.Now)
	}
	_, err = t.text(p.Stderr, 0, p.Color)
	return err
}

// create makes a file that does not exist; an empty one is not made.
func (p *Program) create(path, text string) error {
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
