package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// selection is which records are wanted, as the options say.
type selection struct {
	since, until string
	where        []string
	id           string
	open, ended  bool
	archived     bool
	sort         string
	ascending    bool
	limit        int
}

// tableLimit is how many records a table has when nothing else is asked.
const tableLimit = 50

func (p *Program) recordsCommand() *cobra.Command {
	var s selection
	var f format
	cmd := &cobra.Command{
		Use: "records", Short: "List records",
		Long: `List records, running ones first and then the most recently ended.

A table has 50 records unless -limit is given; json is one record per line; csv
has a column for each key and component; json and csv have all records. Times
are by the site's clock in a table, and in UTC in json and csv; -since and -until
take a date or a date with time by the site's clock, RFC 3339, or how long ago,
such as 36h or 7d.

Archived records are left out unless -archived is given.`,
		Example: "  bursar records -since 7d -where group_id=atlas\n  bursar records -open\n  bursar records -since 2026-01-01 -until 2026-02-01 -format csv > january.csv",
		Args:    cobra.NoArgs,
	}
	conn := p.connectionFlags(cmd)
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	s.addFlags(cmd)
	p.completeKeys(cmd, conn)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.limit < -1 {
			return commandline.UsageError(cmd, fmt.Errorf("-limit: %d is no number of records; -1 is all", s.limit))
		}
		where, err := pairsOf("-where", s.where)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		query, err := s.selectionQuery(p.Now(), where, time.UTC)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if s.since+s.until != "" { // whose days are those of the site
			zone, err := v1.API{Caller: c}.Clock(cmd.Context(), "")
			if err != nil {
				return err
			}
			query, _ = s.selectionQuery(p.Now(), where, zone) // which was right above
		}
		n, err := p.writeRecords(cmd.Context(), c, query, f, s.limit)
		switch {
		case err != nil || n > 0 || len(where) == 0 && s.id == "":
			return err
		case s.id != "":
			return newFinding("there is no record %q, or it does not match the other options", s.id)
		}
		return newFinding("no record matches")
	}
	return cmd
}

func sortOrders() []string {
	return []string{"stop_time", "start_time", "runtime", "record_id", "meta.user_id", "meta.group_id", "component.Cores"}
}

// addFlags adds the flags of a selection to a command.
func (s *selection) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&s.since, "since", "", "records that ended at this `time` or later")
	fl.StringVar(&s.until, "until", "", "records that ended before this `time`")
	fl.StringArrayVar(&s.where, "where", nil, "records with `key=value` in their meta, of several values with commas one; a comma of a value is written \\,; may be repeated, and then all hold")
	fl.StringVar(&s.id, "id", "", "the record of this `id`")
	fl.BoolVar(&s.open, "open", false, "records that run")
	fl.BoolVar(&s.ended, "ended", false, "records that have ended")
	fl.BoolVar(&s.archived, "archived", false, "records of archives too, read from their files")
	fl.StringVar(&s.sort, "sort", "", "the order: stop_time, start_time, runtime, record_id, meta.KEY, component.NAME or used.NAME, which is the amount × the run time, such as meta.user_id or used.Cores")
	fl.BoolVar(&s.ascending, "ascending", false, "turn the order round")
	fl.IntVar(&s.limit, "limit", 0, "at most this `number` of records; a table has 50, -1 is all")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(sortOrders(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
}

// selectionQuery is the query of the selection, without the limit. Times that name no zone are by
// the clock of zone.
func (s *selection) selectionQuery(now time.Time, where []pair, zone *time.Location) (*v1.ListRecordsQuery, error) {
	tests, err := metaTests("-where", where)
	if err != nil {
		return nil, err
	}
	q := &v1.ListRecordsQuery{RecordID: s.id, Meta: tests}
	for _, bound := range []struct {
		name, text string
		at         *v1.Time
	}{{"-since", s.since, &q.StopTime.Gte}, {"-until", s.until, &q.StopTime.Lt}} {
		if bound.text == "" {
			continue
		}
		t, err := parseMoment(bound.text, now, zone)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bound.name, err)
		}
		*bound.at = v1.Time{Time: t}
	}
	if s.open && s.ended {
		return nil, fmt.Errorf("-open and -ended leave nothing")
	}
	if s.archived {
		q.Archived = new(true)
	}
	if s.open || s.ended {
		q.Open = new(s.open)
	}
	return q, s.setOrder(q)
}

// setOrder puts the order into the query.
func (s *selection) setOrder(q *v1.ListRecordsQuery) error {
	word := cmp.Or(s.sort, "stop_time")
	kind, name, named := strings.Cut(word, ".")
	switch {
	case !named && !slices.Contains([]string{"stop_time", "start_time", "runtime", "record_id"}, word), named && (name == "" || kind != "meta" && kind != "component"):
		return fmt.Errorf("-sort: invalid order %q: use one of %s", s.sort, strings.Join(sortOrders(), ", "))
	case named && s.ascending:
		q.Order = word
	case named:
		q.Order = "-" + word
	case s.ascending:
		q.SortBy.Asc = word
	default:
		q.SortBy.Desc = word
	}
	return nil
}

// pair is key=value of an option.
type pair struct{ key, value string }

// pairsOf reads key=value options.
func pairsOf(option string, list []string) ([]pair, error) {
	var out []pair
	for _, text := range list {
		key, value, whole := strings.Cut(text, "=")
		switch {
		case key == "":
			return nil, fmt.Errorf("%s: %q is not key=value", option, text)
		case !whole:
			return nil, fmt.Errorf("%s: %q has no value; write %s=VALUE", option, text, key)
		}
		out = append(out, pair{key, value})
	}
	return out, nil
}

// counted counts the lines that are written.
type counted struct {
	io.Writer

	lines int
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte{'\n'})
	return c.Writer.Write(b)
}

// metaTests are the conditions that each value is among those of its key; where it is a
// list, that one of its values is.
func metaTests(option string, list []pair) (map[string]v1.MetaTest, error) {
	tests := map[string]v1.MetaTest{}
	for _, one := range list {
		test, values := tests[one.key], v1.SplitList(one.value)
		switch {
		case len(values) == 1:
			test.C = append(test.C, values...)
		case test.Any != nil:
			return nil, fmt.Errorf("%s: %s has two lists of values; give it one list", option, one.key)
		default:
			test.Any = values
		}
		tests[one.key] = test
	}
	return tests, nil
}

// parseMoment reads a time, or how long ago it is. A time without a zone is in zone.
func parseMoment(s string, now time.Time, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t, nil
		}
	}
	if d, err := hcl.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	if why := calendar.Impossible(s); why != "" {
		return now, fmt.Errorf("invalid time %q: %s", s, why)
	}
	return now, fmt.Errorf("invalid time %q: use a time, like 2026-01-31 or 2026-01-31T12:00:00Z, or how long ago, like 36h or 7d", s)
}

// writeRecords writes the answer in the format, and returns how many records it has.
func (p *Program) writeRecords(ctx context.Context, c *client.Client, query *v1.ListRecordsQuery, f format, limit int) (n int, err error) {
	query.Limit = max(limit, 0)
	out := &counted{Writer: p.Stdout}
	switch f {
	case asCSV:
		err = c.ListRecordsAs(ctx, query, "text/csv", out)
		return out.lines - 1, err // the first one is the head
	case asJSON:
		err = c.ListRecordsAs(ctx, query, "application/x-ndjson", out)
		return out.lines, err
	}
	return p.recordTable(ctx, c, query, limit)
}

// recordTable writes records for people and says when there are more.
func (p *Program) recordTable(ctx context.Context, c *client.Client, query *v1.ListRecordsQuery, limit int) (n int, err error) {
	if limit == 0 {
		limit = tableLimit
		query.Limit = limit + 1
	}
	var list []v1.FullRecord
	for r, err := range c.ListRecordsLines(ctx, query) {
		if err != nil {
			return 0, err
		}
		list = append(list, r)
	}
	more := limit > 0 && len(list) > limit
	if more {
		list = list[:limit]
	}
	if len(list) == 0 && (len(query.Meta) > 0 || query.RecordID != "") {
		return 0, nil // which is a finding
	}
	at := clockFor(asTable, c.Zone())
	out := listPage(view.Records(list, "group_id", "user_id"), at)
	out.notes = append(out.notes, at.zoneNotes()...)
	if more {
		out.notes = append(out.notes, "There are more: -limit -1 lists all of them.")
	}
	return len(list), p.writeAnswer(list, asTable, out)
}
