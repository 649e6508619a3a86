package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) tokenCommand() *cobra.Command {
	return groupCommand("token", "Let machines join the cluster, and programs use its API", "  bursar token create -role agent\n  bursar token create -role read -name grafana -ttl 90d\n  bursar token list\n  bursar token revoke 0123456789abcdef",
		p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRevokeCommand())
}

// newToken is what a token is asked for.
type newToken struct {
	role, life, name, person string
	where                    []string
	pseudonyms               bool
}

// isMachine reports whether the token is one by which a machine joins.
func (t *newToken) isMachine() bool {
	return t.role == string(identity.Agent) || t.role == string(identity.Aggregator)
}

func (t *newToken) allRoles() []string {
	return append([]string{string(identity.Agent), string(identity.Aggregator)}, identity.RightNames()...)
}

// buildRequest checks the options and makes the request of them.
func (t *newToken) buildRequest() (v1.NewToken, error) {
	wish := v1.NewToken{Role: t.role, Name: t.name, Person: t.person, Pseudonyms: t.pseudonyms}
	if _, err := identity.ParseRights(t.role); err != nil && !t.isMachine() {
		return wish, fmt.Errorf("-role: %q is none of %s", t.role, strings.Join(t.allRoles(), ", "))
	}
	if t.life == "" {
		t.life = "90d"
		if t.isMachine() {
			t.life = "1h"
		}
	}
	d, err := hcl.ParseDuration(t.life)
	if err != nil {
		return wish, fmt.Errorf("-ttl: %w", err)
	}
	rows, err := pairsOf("-where", t.where)
	wish.LifetimeSeconds, wish.Rows = int64(d/time.Second), rowFilter(rows)
	return wish, err
}

// joinLine is what the command prints: the command that joins, or the token, and a hint.
func (t *newToken) joinLine(made *v1.IssuedToken, c *clock) (line, hint string) {
	switch t.role {
	case string(identity.Agent):
		line = fmt.Sprintf("bursar-agent join %s %s", made.Address, made.Token)
	case string(identity.Aggregator):
		line = fmt.Sprintf("bursar init -join %s -token %s", made.Address, made.Token)
	default:
		return made.Token, "This token is shown once. It works until " + c.timeWithZone(made.Expires) + "."
	}
	return line, "Run this line as root on the other machine, once, before " + c.timeWithZone(made.Expires) + "."
}

func (p *Program) tokenCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create", Short: "Print the command by which one machine joins, or a token of the API", Args: cobra.NoArgs,
		Long: `With -role agent or aggregator, print the command by which one machine joins: run it there
as root. The token in it works once, for a short time, and names the authority of this
cluster, so that no machine in between can pretend to be the cluster.

With other roles, such as read or read,monitor, print a token of the API, which is shown
this once: programs send it as "Authorization: Bearer TOKEN" by TLS, bursar takes it from
BURSAR_TOKEN or -token-file, and people log in with it at /ui/login. -where and -person limit
it to some of the records, and -pseudonyms shows pseudonyms in the place of the names of persons.

This needs the role admin.`,
		Example: `  bursar token create -role agent
  bursar token create -role aggregator -ttl 15m
  bursar token create -role agent -name nemo-head1
  bursar token create -role monitor -name prometheus -ttl 366d
  bursar token create -role read -where group_id=atlas -name atlas-dashboard
  bursar token create -role read -person alice -ttl 90d
  bursar token create -role read -pseudonyms -name funding-agency`,
	}
	conn := p.connectionFlags(cmd)
	var f format
	formatFlag(cmd, &f, asTable, asJSON)
	var t newToken
	fl, roles := cmd.Flags(), t.allRoles()
	fl.StringVar(&t.role, "role", roles[0], "what joins: agent, aggregator; or `roles` of the API with commas: "+strings.Join(identity.RightNames(), ", "))
	fl.StringVar(&t.life, "ttl", "", "how `long` the token works: of a machine at most 7d, of the API at most 366d (default 1h and 90d)")
	fl.StringVar(&t.name, "name", "", "of a machine the only `name` that the token gives, where a machine of that name is replaced; of the API what you call it")
	fl.StringArrayVar(&t.where, "where", nil, "the token shows only records with `key=value` in their meta; several values with commas, or several times, match any of them; a comma of a value is written \\,")
	fl.StringVar(&t.person, "person", "", "the token shows only the records of this `user`, and of the projects and groups that they lead by the directory")
	fl.BoolVar(&t.pseudonyms, "pseudonyms", false, "the token shows pseudonyms in the place of the names of persons, and of other meta only keys of groups and places, and dimensions")
	p.completeKeys(cmd, conn)
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		wish, err := t.buildRequest()
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		made, err := c.CreateToken(cmd.Context(), wish)
		if err != nil {
			return err
		}
		if f == asJSON {
			return p.printJSON(made)
		}
		line, hint := t.joinLine(&made, clockFor(asTable, c.Zone()))
		if _, err := fmt.Fprintln(p.Stdout, line); err != nil {
			return err
		}
		p.say("%s", hint)
		return nil
	}
	return cmd
}

func (p *Program) tokenListCommand() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "list", Short: "List the tokens, and their last use", Example: "  bursar token list\n  bursar token list -format json",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Tokens, error) { return api.Tokens(ctx) }, showList(view.Tokens))
}

func (p *Program) tokenRevokeCommand() *cobra.Command {
	return p.changeByArg(&cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke a token", Args: cobra.ExactArgs(1), Example: "  bursar token revoke 0123456789abcdef",
		Long: "Revoke a token by its id, which bursar token list prints. A token of the API works no more\nat once. A certificate that a token has given stays valid until it ends;\nbursar agents remove takes an agent away.",
	}, v1.API.RevokeToken)
}

// rowFilter is a filter of which all keys must hold.
func rowFilter(where []pair) v1.RowFilter {
	if len(where) == 0 {
		return nil
	}
	row := map[string][]string{}
	for _, w := range where {
		row[w.key] = append(row[w.key], v1.SplitList(w.value)...)
	}
	return v1.RowFilter{row}
}

func (p *Program) agentRemoveCommand() *cobra.Command {
	return p.changeByArg(&cobra.Command{
		Use: "remove NAME", Short: "Take away an agent that joined by a token", Args: cobra.ExactArgs(1), Example: "  bursar agents remove nemo-head1",
		Long: "Take away an agent that joined by a token: the leader pulls from it no more. Its records\nstay. An agent of the configuration is taken away there.",
	}, v1.API.RemoveAgent)
}

// changeByArg completes a command of one argument that orders a change and says what was done.
func (p *Program) changeByArg(cmd *cobra.Command, ask func(v1.API, context.Context, string) (v1.Message, error)) *cobra.Command {
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		answer, err := ask(c.API, cmd.Context(), args[0])
		if err == nil {
			p.say("%s", answer.Message)
		}
		return err
	}
	return cmd
}
