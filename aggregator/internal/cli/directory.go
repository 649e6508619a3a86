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
	return queryCommand(p, cmd, ask, func(answer v1.Directory, f format, c *clock) page {
		d := (*directory)(&answer)
		t, notes := d.partTable(part, f, c)
		out := page{table: t, notes: notes}
		if part == "unclaimed" && len(t.rows) > 0 {
			out.found = newFinding("%d groups or users belong to no project", len(t.rows)+d.Unclaimed.More)
		}
		return out
	})
}

// directory is an answer of GET /v1/directory.
type directory v1.Directory

// partTable shows a part of the directory, with notes on how to read it.
func (d *directory) partTable(part string, f format, c *clock) (t *table, notes []string) {
	switch part {
	case "people":
		t = newTable("ID", "~NAME", "?EMAIL", "~GROUPS", "PROJECT", "PI")
		for _, p := range d.People {
			t.addRow(p.ID, orDash(string(p.Name)), orDash(string(p.Email)), orDash(v1.JoinList(p.Groups...)), orDash(string(p.Project)), orDash(string(p.PI)))
		}
		return t, []string{"The project is that of records without a group."}
	case "classes":
		t = newTable("CLASS", "~PATTERN", ">FACTOR")
		for _, class := range d.HostClasses {
			t.addRow(class.ID, class.Pattern, trimDecimal(class.SUFactor))
		}
		return t, d.classNotes()
	case "contributions":
		t = newTable("~CONTRIBUTION", "BY", "CREDIT", ">AMOUNT", ">SPLIT", ">FACTOR", ">UNITS", "?FROM", "?TO")
		for _, n := range d.Contributions {
			t.addRow(n.ID, n.By, n.Credit, trimDecimal(&n.Amount), trimDecimal(&n.Split), trimDecimal(&n.SUFactor), trimDecimal(&n.Units), c.instantText(n.From), c.instantText(n.To))
		}
		return t, nil
	case "unclaimed":
		return d.unclaimedTable(f, c)
	}
	t = newTable("PROJECT", "PI", "?NAME", "~GROUPS", "~USERS", "?EXEMPT", "?SINCE", "?UNTIL")
	for _, p := range d.Projects {
		exempt := "-"
		if p.Exempt {
			exempt = "yes"
		}
		t.addRow(p.ID, orDash(string(p.PI)), orDash(string(p.PIName)), orDash(v1.JoinList(p.Groups...)), orDash(v1.JoinList(p.Users...)), exempt, c.instantText(p.Since), c.instantText(p.Until))
	}
	return t, []string{fmt.Sprintf("As it is at %s. There are more parts: people (%d), classes of hosts (%d), contributions (%d); see bursar directory -h.",
		c.timeWithZone(d.At), len(d.People), len(d.HostClasses), len(d.Contributions))}
}

func (d *directory) classNotes() []string {
	note := "The first class whose pattern matches counts."
	switch {
	case d.ServiceUnits == nil:
	case d.ServiceUnits.DefaultFactor == nil:
		note += " What has no factor is counted apart."
	default:
		note += " What has no factor has " + trimDecimal(d.ServiceUnits.DefaultFactor) + "."
	}
	return []string{note}
}

func (d *directory) unclaimedTable(f format, c *clock) (t *table, notes []string) {
	t = newTable("GROUP", "USER", ">RECORDS")
	none := "-"
	if f == asTable {
		none = view.NoValue
	}
	if d.Unclaimed == nil {
		return t, nil
	}
	for _, l := range d.Unclaimed.Lines {
		t.addRow(firstNonEmpty(string(l.Group), none), firstNonEmpty(string(l.User), none), fmt.Sprint(l.Records))
	}
	if d.Unclaimed.More > 0 {
		notes = append(notes, fmt.Sprintf("There are %d more with fewer records.", d.Unclaimed.More))
	}
	if len(t.rows) == 0 {
		notes = append(notes, "The projects of "+c.timeWithZone(d.At)+" claim everything that ran since "+c.timeWithZone(d.Unclaimed.From)+".")
	}
	return t, notes
}

// trimDecimal writes a number without zeros at its end that say nothing.
func trimDecimal(n *json.Number) string {
	if n == nil {
		return "-"
	}
	s := n.String()
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
