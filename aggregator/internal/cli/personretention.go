package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) personRetention() *cobra.Command {
	months := 0
	cmd := &cobra.Command{
		Use: "retention", Short: "Show how long records keep names, and what is due; change nothing",
		Long: `Show how long records keep the names of persons, when names were removed last, and what
would be removed now. Nothing is changed: the leader removes names by itself where the
aggregator block has

    retention {
      names_months = 18
    }

Then calendar months go whole, when their first day is so many months ago. In each record of
that time, erased- and a code take the place of the user's name: one code for a person in a
month. Totals stay as they are: usage, times, group and project. Jobs in quarantine that last
came so long ago are dropped. Without the block nothing is removed; -months shows what would be.

Not reached: records of which the details are archived, the files of archives, backups and
snapshots. Archive a month after its names are gone, and keep backups for a shorter time.`,
		Example: "  bursar person retention\n  bursar person retention -months 18",
	}
	cmd.Flags().IntVar(&months, "months", 0, "show what would be removed if names were kept for so `many` months")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.RetentionPlan, error) {
		return api.Retention(ctx, &v1.RetentionQuery{Months: months})
	}
	return queryCommand(p, cmd, ask, showRetention)
}

func showRetention(plan v1.RetentionPlan, _ format, c *clock) page {
	t := newTable("WHAT", "~VALUE")
	t.addRow("names", retentionText(&plan.Retention, c))
	if drop := plan.Retention.Drop; len(drop) > 0 {
		t.addRow("keys that go with them", strings.Join(drop, ", "))
	}
	if plan.Retention.Archived > 0 {
		t.addRow("not removed", view.Plural(plan.Retention.Archived, "archived record"))
	}
	if due := plan.Due; due != nil {
		t.addRow("due now", fmt.Sprintf("%s of %s that stopped before %s, %s", view.Plural(due.Records, "record"), view.Plural(due.People, "user"), c.instantText(due.Until), view.Plural(due.Quarantined, "quarantined job")))
		t.addRow("keys that stay", orDash(strings.Join(due.Keys, ", ")))
		if due.Archived > 0 {
			t.addRow("not reached", view.Plural(due.Archived, "archived record"))
		}
		if len(due.Archives) > 0 {
			t.addRow("files with names", "archives "+strings.Join(due.Archives, ", "))
		}
	}
	t.addRow("not reached", "backups and snapshots, logs, what actions have sent")
	return page{table: t}
}

// retentionText says how long names are kept, and when they were removed last.
func retentionText(r *v1.Retention, c *clock) string {
	text := "kept for ever"
	if r.NamesMonths != nil {
		text = fmt.Sprintf("kept at most %s", view.Plural(*r.NamesMonths, "month"))
	}
	if r.Last.IsZero() {
		return text + ", never removed"
	}
	text += fmt.Sprintf(", last removed %s from %s (%d in all)", c.instantText(r.Last), view.Plural(r.Records, "record"), r.Total)
	if r.Archived > 0 {
		text += fmt.Sprintf("; %s still have them", view.Plural(r.Archived, "archived record"))
	}
	return text
}
