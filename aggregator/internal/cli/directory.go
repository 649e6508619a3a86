package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"

	"github.com/bursar-accounting/bursar/proto/commandline"
)

// directoryParts are what the command directory can show.
func directoryParts() []string {
	return []string{"projects", "people", "classes", "contributions"}
}

func (p *Program) directoryCommand() *cobra.Command {
	var at string
	var unclaimed bool
	cmd := &cobra.Command{
		Use: "directory [projects|people|classes|contributions]", Short: "Show projects, people, host classes and contributions",
		Long: `Show who belongs where: projects with their principal investigator, groups and
users; people; classes of hosts with their factors; contributions. It comes from
the configuration, and from what sources tell of people.

-at shows another time than now. -unclaimed lists the groups and users that have
records in the 90 days before and that no project claims; exit code 2 says that
there are some. json has all of it, csv what the table has.`,
		Example: "  bursar directory\n  bursar directory people -format csv > people.csv\n  bursar directory classes -at 2026-03-01\n  bursar directory -unclaimed",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !slices.Contains(directoryParts(), args[0]) {
				return commandline.UsageError(cmd, fmt.Errorf("%q: want one of %s", strings.Join(args, " "), strings.Join(directoryParts(), ", ")))
			}
			return nil
		},
		ValidArgs: directoryParts(),
	}
	cmd.Flags().StringVar(&at, "at", "", "as it is at a `time`: a date, RFC 3339, or how long ago")
	cmd.Flags().BoolVar(&unclaimed, "unclaimed", false, "groups and users with records that no project claims")
	part := directoryParts()[0]
	ask := func(ctx context.Context, api v1.API, args []string) (v1.Directory, error) {
		switch {
		case len(args) > 0 && unclaimed:
			return v1.Directory{}, commandline.UsageError(cmd, fmt.Errorf("-unclaimed is about groups and users; leave %s out", args[0]))
		case len(args) > 0:
			part = args[0]
		case unclaimed:
			part = "unclaimed"
		}
		return api.Directory(ctx, &v1.DirectoryQuery{At: at, Unclaimed: unclaimed})
	}
	return look(p, cmd, ask, func(answer v1.Directory, f format, c *clock) page {
		d := (*directory)(&answer)
		t, notes := d.table(part, f, c)
		out := page{table: t, notes: notes}
		if part == "unclaimed" && len(t.rows) > 0 {
			out.found = found("%d groups or users belong to no project", len(t.rows)+d.Unclaimed.More)
		}
		return out
	})
}

// directory is an answer of GET /v1/directory.
type directory v1.Directory

// table is a part of the directory with what must be known of it.
func (d *directory) table(part string, f format, c *clock) (t *table, notes []string) {
	switch part {
	case "people":
		t = newTable("ID", "~NAME", "?EMAIL", "~GROUPS", "PROJECT", "PI")
		for _, p := range d.People {
			t.add(p.ID, dash(string(p.Name)), dash(string(p.Email)), dash(v1.JoinList(p.Groups...)), dash(string(p.Project)), dash(string(p.PI)))
		}
		return t, []string{"The project is that of records without a group."}
	case "classes":
		t = newTable("CLASS", "~PATTERN", ">FACTOR")
		for _, class := range d.HostClasses {
			t.add(class.ID, class.Pattern, decimal(class.SUFactor))
		}
		return t, d.classNotes()
	case "contributions":
		t = newTable("~CONTRIBUTION", "BY", "CREDIT", ">AMOUNT", ">SPLIT", ">FACTOR", ">UNITS", "?FROM", "?TO")
		for _, n := range d.Contributions {
			t.add(n.ID, n.By, n.Credit, decimal(&n.Amount), decimal(&n.Split), decimal(&n.SUFactor), decimal(&n.Units), c.instant(n.From), c.instant(n.To))
		}
		return t, nil
	case "unclaimed":
		return d.unclaimed(f, c)
	}
	t = newTable("PROJECT", "PI", "?NAME", "~GROUPS", "~USERS", "?EXEMPT", "?SINCE", "?UNTIL")
	for _, p := range d.Projects {
		exempt := "-"
		if p.Exempt {
			exempt = "yes"
		}
		t.add(p.ID, dash(string(p.PI)), dash(string(p.PIName)), dash(v1.JoinList(p.Groups...)), dash(v1.JoinList(p.Users...)), exempt, c.instant(p.Since), c.instant(p.Until))
	}
	return t, []string{fmt.Sprintf("As it is at %s. There are more parts: people (%d), classes of hosts (%d), contributions (%d); see bursar directory -h.",
		c.stamp(d.At), len(d.People), len(d.HostClasses), len(d.Contributions))}
}

func (d *directory) classNotes() []string {
	note := "The first class whose pattern matches counts."
	switch {
	case d.ServiceUnits == nil:
	case d.ServiceUnits.DefaultFactor == nil:
		note += " What has no factor is counted apart."
	default:
		note += " What has no factor has " + decimal(d.ServiceUnits.DefaultFactor) + "."
	}
	return []string{note}
}

func (d *directory) unclaimed(f format, c *clock) (t *table, notes []string) {
	t = newTable("GROUP", "USER", ">RECORDS")
	none := "-"
	if f == asTable {
		none = view.NoValue
	}
	if d.Unclaimed == nil {
		return t, nil
	}
	for _, l := range d.Unclaimed.Lines {
		t.add(or(string(l.Group), none), or(string(l.User), none), fmt.Sprint(l.Records))
	}
	if d.Unclaimed.More > 0 {
		notes = append(notes, fmt.Sprintf("There are %d more with fewer records.", d.Unclaimed.More))
	}
	if len(t.rows) == 0 {
		notes = append(notes, "The projects of "+c.stamp(d.At)+" claim everything that ran since "+c.stamp(d.Unclaimed.From)+".")
	}
	return t, notes
}

// decimal is a number without zeros that say nothing.
func decimal(n *json.Number) string {
	if n == nil {
		return "-"
	}
	s := n.String()
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
