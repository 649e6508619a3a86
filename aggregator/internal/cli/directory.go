package cli

import (
	"context"
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
	return queryCommand(p, cmd, ask, func(d v1.Directory, _ format, c *clock) page {
		l := directoryPart(d, part, c.zone.String())
		out := listPage(l, c)
		if part == "unclaimed" && len(l.Rows) > 0 {
			out.found = newFinding("%d groups or users belong to no project", len(l.Rows)+d.Unclaimed.More)
		}
		return out
	})
}

// directoryPart is what the command shows of the directory, with times by the clock of a zone.
func directoryPart(d v1.Directory, part, zone string) view.List {
	switch part {
	case "people":
		return view.People(d)
	case "classes":
		return view.HostClasses(d)
	case "contributions":
		return view.Contributions(d)
	case "unclaimed":
		return view.Unclaimed(d, zone)
	}
	return view.Projects(d, zone)
}
