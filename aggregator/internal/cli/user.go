package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) userCommand() *cobra.Command {
	return group("user", "Let people log in at the pages with a password", "  bursar user add alice -person alice\n  bursar user passwd alice\n  bursar user list\n  bursar user remove alice",
		p.userAddCommand(), p.userPasswordCommand(), p.userListCommand(), p.userRemoveCommand())
}

func (p *Program) userAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a user who logs in at the pages with a password", Args: cobra.ExactArgs(1),
		Long: `Add a user who logs in at the pages with a password, which is asked for, or is the first line
of the standard input. -where and -person limit what they see. This needs the role admin.
Larger sites let people log in at a provider of OpenID Connect: access.oidc of the
configuration.`,
		Example: "  bursar user add alice -person alice\n  bursar user add director -role read,monitor\n  pwgen 20 1 | bursar user add bob -where group_id=atlas",
	}
	conn := p.connect(cmd)
	user := v1.NewUser{}
	var where []string
	fl := cmd.Flags()
	fl.StringVar(&user.Roles, "role", "read", "`roles` with commas: "+strings.Join(identity.RightNames(), ", "))
	fl.StringArrayVar(&where, "where", nil, "the user sees only records with `key=value` in their meta; several values of a key match any of them; may be repeated")
	fl.StringVar(&user.Person, "person", "", "the user sees only the records of this `user`, and of the projects and groups that they lead by the directory")
	p.completeKeys(cmd, conn)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rows, err := pairsOf("-where", where)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		user.Name, user.Rows = args[0], rowFilter(rows)
		return p.withPassword(cmd, conn, func(api v1.API, password string) (v1.Message, error) {
			user.Password = password
			return api.AddUser(cmd.Context(), user)
		})
	}
	return cmd
}

func (p *Program) userPasswordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "passwd NAME", Short: "Give a user another password; their sessions end", Args: cobra.ExactArgs(1), Example: "  bursar user passwd alice",
		Long: "Give a user another password, which is asked for, or is the first line of the standard\ninput. Their sessions end. This needs the role admin.",
	}
	conn := p.connect(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withPassword(cmd, conn, func(api v1.API, password string) (v1.Message, error) {
			return api.SetPassword(cmd.Context(), args[0], v1.NewPassword{Password: password})
		})
	}
	return cmd
}

// withPassword reads a password and asks for a change with it.
func (p *Program) withPassword(cmd *cobra.Command, conn *connection, ask func(api v1.API, password string) (v1.Message, error)) error {
	password, err := p.readPassword(cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := conn.open(p)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := ask(c.API, password)
	if err == nil {
		p.say("%s", answer.Message)
	}
	return err
}

// readPassword asks at a terminal, twice and without an echo; otherwise it is the first line.
func (p *Program) readPassword(in io.Reader) (string, error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		line, err := bufio.NewReader(in).ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return "", errors.Join(errors.New("the standard input has no password in its first line"), notEnd(err))
		}
		return line, nil
	}
	var twice [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		_, _ = fmt.Fprint(p.Stderr, prompt)
		text, err := term.ReadPassword(int(file.Fd()))
		_, _ = fmt.Fprintln(p.Stderr)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		twice[i] = string(text)
	}
	if twice[0] != twice[1] {
		return "", errors.New("the two passwords differ: try again")
	}
	return twice[0], nil
}

func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *Program) userListCommand() *cobra.Command {
	return look(p, &cobra.Command{
		Use: "list", Short: "List the users who log in with a password", Example: "  bursar user list\n  bursar user list -format json",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Users, error) { return api.Users(ctx) }, func(list v1.Users, _ format, c *clock) page {
		t := newTable("NAME", "ROLES", "?RECORDS", "CREATED BY", "CREATED", "PASSWORD SET")
		for _, u := range list.Users {
			t.add(u.Name, u.Roles, dash(rowsOf(u.Person, u.Rows)), u.CreatedBy, c.instant(u.Created), c.instant(u.Changed))
		}
		return page{table: t}
	})
}

func (p *Program) userRemoveCommand() *cobra.Command {
	return p.done(&cobra.Command{
		Use: "remove NAME", Short: "Remove a user; their sessions end", Args: cobra.ExactArgs(1), Example: "  bursar user remove alice",
	}, v1.API.RemoveUser)
}
