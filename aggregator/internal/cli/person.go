package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) personCommand() *cobra.Command {
	return groupCommand("person", "Export or erase what is stored about persons",
		"  bursar person export erika > erika.ndjson\n  bursar person erase erika\n  bursar person retention", p.personExport(), p.personErase(), p.personRetention())
}

// person is whose records are wanted.
type person struct {
	api       *client.Client
	key, name string
	directory v1.Directory
	archives  []v1.Archive // those that took records out of the store
}

// onPerson makes a command about the person of its argument.
func (p *Program) onPerson(cmd *cobra.Command, run func(context.Context, *person) error) *cobra.Command {
	conn, key := p.connectionFlags(cmd), ""
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringVar(&key, "key", "", "the meta `key` that names people; the default is the directory's, user_id")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		who := &person{api: c, name: args[0]}
		if who.directory, err = c.Directory(cmd.Context(), nil); err != nil {
			return err
		}
		if who.key = cmp.Or(key, who.directory.Keys.User); who.name == "" {
			return commandline.UsageError(cmd, fmt.Errorf("the value of %s is empty", who.key))
		}
		if who.archives, err = listArchives(cmd.Context(), c); err != nil {
			return err
		}
		return run(cmd.Context(), who)
	}
	return cmd
}

// listArchives returns the archives that have taken records out of the store.
func listArchives(ctx context.Context, c *client.Client) ([]v1.Archive, error) {
	list, err := c.Archives(ctx, nil)
	return slices.DeleteFunc(list.Archives, func(a v1.Archive) bool { return a.State == "checking" }), err
}

func (p *Program) personExport() *cobra.Command {
	return p.onPerson(&cobra.Command{
		Use: "export NAME", Short: "Write a person's records and quarantined jobs as JSON lines",
		Long:    "Write a person's records, those of archives too, what origins that are not shown say of the\nperson's runs, and the quarantined jobs that name the person, as JSON lines.",
		Example: "  bursar person export erika > erika.ndjson",
	}, func(ctx context.Context, who *person) error {
		out := &counted{Writer: p.Stdout}
		none, err := who.exportRecords(ctx, out)
		if err != nil {
			return err
		}
		jobs, err := who.quarantinedJobs(ctx)
		if err != nil {
			return err
		}
		unshown := 0
		for entry, err := range who.unshownRecords(ctx) {
			if err == nil {
				err = json.NewEncoder(p.Stdout).Encode(entry)
			}
			if err != nil {
				return err
			}
			unshown++
		}
		if len(jobs)+unshown == 0 && none != nil {
			return none // near names
		}
		for i := 0; i < len(jobs) && err == nil; i++ {
			err = json.NewEncoder(p.Stdout).Encode(jobs[i])
		}
		if err != nil {
			return err
		}
		p.say("%s%s, %s", view.Plural(out.lines, "record"), unshownPhrase(unshown), view.Plural(len(jobs), "quarantined job"))
		p.sayElsewhere(ctx, who)
		return nil
	})
}

// exportRecords writes the person's records, those of archives too. Where there are none, none
// says which names are near.
func (who *person) exportRecords(ctx context.Context, out *counted) (none, err error) {
	q := who.personQuery()
	if len(who.archives) > 0 {
		q.Archived = new(true)
	}
	err = who.api.ListRecordsAs(ctx, q, "application/x-ndjson", out)
	if err == nil && out.lines == 0 && q.Archived != nil { // the answer is empty then, without near names
		none, q.Archived = newFinding("no record has %s %q", who.key, who.name), nil
		if near := who.api.ListRecordsAs(ctx, q, "application/x-ndjson", out); errors.Is(near, client.ErrNoMatch) {
			none = near
		}
		return none, nil
	}
	if errors.Is(err, client.ErrNoMatch) {
		return err, nil
	}
	return nil, err
}

func (who *person) personQuery() *v1.ListRecordsQuery {
	return &v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{who.key: {C: []string{who.name}}}}
}

// unshownRecords are the records of which an origin that is not shown names the person, by id.
func (who *person) unshownRecords(ctx context.Context) iter.Seq2[v1.Entry, error] {
	return func(yield func(v1.Entry, error) bool) {
		for q, more := (v1.HoldingsQuery{Name: who.name, Key: who.key}), true; more; {
			page, err := who.api.Holdings(ctx, &q)
			if err != nil {
				yield(v1.Entry{}, err)
				return
			}
			for _, e := range page.Holdings {
				if !yield(e, nil) {
					return
				}
				q.After = e.RecordID
			}
			more = page.More
		}
	}
}

// unshownPhrase says how many records an origin that is not shown says to be of the person.
func unshownPhrase(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %s of others by what is shown)", view.Plural(n, "record"))
}

// archivedRecords counts the person's records of which the details are in archives, and names
// those of which the time has such records.
func (who *person) archivedRecords(ctx context.Context) (n int, names []string, err error) {
	type period struct{ from, to int64 }
	seen := map[period]bool{}
	for i := range who.archives {
		a := &who.archives[i]
		at := period{a.From.UnixNano(), a.To.UnixNano()}
		if seen[at] { // supplements
			continue
		}
		seen[at] = true
		q := who.personQuery()
		q.StopTime.Gte, q.StopTime.Lt = a.From, a.To
		// All come first, so that what is archived meanwhile is counted.
		q.Archived = new(true)
		all, err := who.countRecords(ctx, q)
		if err != nil {
			return 0, nil, fmt.Errorf("cannot search archive %s for records of %s=%s: %w", a.Name, who.key, who.name, err)
		}
		q.Archived = nil
		here, err := who.countRecords(ctx, q)
		if err != nil && !errors.Is(err, client.ErrNoMatch) {
			return 0, nil, err
		}
		if all > here {
			n, names = n+all-here, append(names, a.Name)
		}
	}
	return n, names, nil
}

// countRecords counts the records of a query.
func (who *person) countRecords(ctx context.Context, q *v1.ListRecordsQuery) (n int, err error) {
	for _, err := range who.api.ListRecordsLines(ctx, q) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// quarantinedJobs are the jobs in quarantine that have the name in them.
func (who *person) quarantinedJobs(ctx context.Context) (jobs []v1.Quarantined, err error) {
	list, err := who.api.Quarantine(ctx, nil)
	if err != nil {
		return nil, err
	}
	if list.More {
		return nil, fmt.Errorf("more jobs are in quarantine than can be searched: settle some with bursar quarantine retry or drop")
	}
	for i := range list.Quarantine {
		q := &list.Quarantine[i]
		whole, err := who.api.Quarantined(ctx, q.Agent, q.SourceType, q.SourceLabel, q.ID, nil)
		if err != nil {
			return nil, err
		}
		if erasure.HasWord(whole.ID+"\n"+whole.Message+"\n"+whole.RecordID+"\n"+whole.Raw, who.name) {
			jobs = append(jobs, whole)
		}
	}
	return jobs, nil
}
