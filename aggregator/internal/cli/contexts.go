package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/durable"
)

// contexts is the file of the clusters that a user has given names.
type contexts struct {
	Current string         `hcl:"current,optional"`
	List    []namedCluster `hcl:"context,block"`

	path string
}

// namedCluster is a block context "NAME" { … }.
type namedCluster struct {
	Name    string `hcl:"name,label"`
	Address string `hcl:"address"`
	CA      string `hcl:"ca_cert,optional"`
	Cert    string `hcl:"client_cert,optional"`
	Key     string `hcl:"client_key,optional"`
	// TokenFile has a token of the API.
	TokenFile string `hcl:"token_file,optional"`
}

// readContexts reads the file of contexts; without one there are none.
func (p *Program) readContexts() (*contexts, error) {
	dir := p.Getenv("XDG_CONFIG_HOME")
	if home := p.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return &contexts{}, nil
	}
	c := &contexts{path: filepath.Join(dir, "bursar", "contexts.hcl")}
	if _, err := os.Stat(c.path); errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	file, diags := hcl.Load(c.path)
	diags.Extend(hcl.Decode(file, c, nil))
	if diags.HasErrors() {
		return nil, troubled{diags, file.Sources}
	}
	return c, nil
}

// findContext returns the context of that name, or the current one where the name is empty; nil
// where none is current.
func (c *contexts) findContext(name string) (*namedCluster, error) {
	if name == "" && c.Current == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	name = cmp.Or(name, c.Current)
	i := slices.IndexFunc(c.List, func(one namedCluster) bool { return one.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no context %q; %s", name, hcl.DidYouMean(name, c.listNames()))
	}
	return &c.List[i], nil
}

func (c *contexts) listNames() []string {
	var names []string
	for i := range c.List {
		names = append(names, c.List[i].Name)
	}
	return names
}

// saveFile writes the file, which only its owner can read.
func (c *contexts) saveFile() error {
	if c.path == "" {
		return errors.New("contexts are kept below the home folder: set HOME")
	}
	var b strings.Builder
	line := func(indent, key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s%s = %s\n", indent, key, hcl.Quote(value))
		}
	}
	line("", "current", c.Current)
	for _, one := range c.List {
		fmt.Fprintf(&b, "\ncontext %s {\n", hcl.Quote(one.Name))
		line("  ", "address", one.Address)
		line("  ", "ca_cert", one.CA)
		line("  ", "client_cert", one.Cert)
		line("  ", "client_key", one.Key)
		line("  ", "token_file", one.TokenFile)
		b.WriteString("}\n")
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	return durable.Replace(c.path, hcl.Format([]byte(b.String())))
}

func (p *Program) contextCommand() *cobra.Command {
	return groupCommand("context", "Name clusters, and choose which one commands ask", "  bursar context add nemo -address https://agg1.example.org:8443,https://agg2.example.org:8443 \\\n    -ca-cert ca.pem -client-cert alice.pem -client-key alice.key\n  bursar context use nemo",
		p.contextAdd(), p.contextUse(), p.contextList(), p.contextRemove())
}

func (p *Program) contextAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Give a cluster a name; the first one is used from then on", Args: cobra.ExactArgs(1),
		Long: `Give a cluster a name, or change what a name stands for. The first one is used by all
commands from then on; BURSAR_ADDR and -address come before it. Several nodes of the
cluster have commas between them: commands go to the next where one cannot be reached.`,
		Example: "  bursar context add nemo -address https://agg1.example.org:8443,https://agg2.example.org:8443 -ca-cert ca.pem -client-cert alice.pem -client-key alice.key\n  bursar context add nemo -address https://agg1.example.org:8443 -ca-cert ca.pem -token-file ~/.bursar-token\n  bursar context add here -address unix:/run/bursar/api.sock",
	}
	conn := p.connectionFlags(cmd)
	_ = cmd.Flags().MarkHidden("context") // the option exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if conn.address == "" {
			return commandline.UsageError(cmd, errors.New("-address is needed"))
		}
		all, err := p.readContexts()
		if err != nil {
			return err
		}
		one := namedCluster{Name: args[0], Address: conn.address}
		for _, file := range []struct {
			from string
			to   *string
		}{{conn.ca, &one.CA}, {conn.cert, &one.Cert}, {conn.key, &one.Key}, {conn.tokenFile, &one.TokenFile}} {
			if file.from == "" {
				continue
			}
			if *file.to, err = filepath.Abs(file.from); err != nil {
				return err
			}
		}
		if err := one.checkUsable(); err != nil {
			return err
		}
		all.List = append(slices.DeleteFunc(all.List, func(old namedCluster) bool { return old.Name == one.Name }), one)
		all.Current = cmp.Or(all.Current, one.Name)
		if err := all.saveFile(); err != nil {
			return err
		}
		p.say("Commands use %s; %s has it", all.Current, all.path)
		return nil
	}
	return cmd
}

// checkUsable reports what is wrong with the address or the files.
func (c *namedCluster) checkUsable() error {
	opt := client.Options{Address: c.Address}
	if c.CA != "" || c.Cert != "" || c.Key != "" {
		var err error
		if opt.TLS, err = client.LoadTLS(c.CA, c.Cert, c.Key); err != nil {
			return err
		}
	}
	one, err := client.New(opt)
	if err == nil {
		one.Close()
	}
	return err
}

func (p *Program) contextUse() *cobra.Command {
	return p.contextChange("use", "Use a cluster from now on", func(all *contexts, name string) { all.Current = name })
}

func (p *Program) contextRemove() *cobra.Command {
	return p.contextChange("remove", "Forget the name of a cluster", func(all *contexts, name string) {
		all.List = slices.DeleteFunc(all.List, func(one namedCluster) bool { return one.Name == name })
		if all.Current == name {
			all.Current = ""
		}
	})
}

// contextChange is a command that changes the file for a context that is there.
func (p *Program) contextChange(use, short string, change func(all *contexts, name string)) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME", Short: short, Example: "  bursar context " + use + " nemo", Args: cobra.ExactArgs(1),
		ValidArgsFunction: p.contextNames,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := p.readContexts()
			if err != nil {
				return err
			}
			if _, err := all.findContext(args[0]); err != nil {
				return err
			}
			change(all, args[0])
			return all.saveFile()
		},
	}
}

// contextNames completes names of contexts.
func (p *Program) contextNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := p.readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return all.listNames(), cobra.ShellCompDirectiveNoFileComp
}

func (p *Program) contextList() *cobra.Command {
	var f format
	cmd := &cobra.Command{Use: "list", Short: "List the names of clusters", Example: "  bursar context list", Args: cobra.NoArgs}
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := p.readContexts()
		if err != nil {
			return err
		}
		type row struct {
			Name       string `json:"name"`
			Used       bool   `json:"used"`
			Address    string `json:"address"`
			CA         string `json:"ca_cert,omitempty"`
			ClientCert string `json:"client_cert,omitempty"`
		}
		rows := []row{}
		t := newTable("NAME", "USED", "ADDRESS", "?CERTIFICATE")
		for _, one := range all.List {
			rows = append(rows, row{one.Name, one.Name == all.Current, one.Address, one.CA, one.Cert})
			used := "-"
			if one.Name == all.Current {
				used = "yes"
			}
			t.addRow(one.Name, used, one.Address, orDash(one.Cert))
		}
		return p.writeAnswer(rows, f, page{table: t})
	}
	return cmd
}
