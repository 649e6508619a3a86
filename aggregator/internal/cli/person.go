package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func (p *Program) personCommand() *cobra.Command {
	return group("person", "Export or erase what is stored about a person",
		"  bursar person export erika > erika.ndjson\n  bursar person erase erika", p.personExport(), p.personErase())
}

// person is whose records are wanted.
type person struct {
	api       *client.Client
	key, name string
	archives  []v1.Archive // those that took records out of the store
}

// onPerson makes a command about the person of its argument.
func (p *Program) onPerson(cmd *cobra.Command, run func(context.Context, *person) error) *cobra.Command {
	conn, key := p.connect(cmd), ""
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringVar(&key, "key", "", "the meta `key` that names people; the default is the directory's, user_id")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if conn.timeout == 0 {
			conn.timeout = archivedPatience
		}
		c, err := conn.open(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if key == "" {
			d, err := c.Directory(cmd.Context(), nil)
			if err != nil {
				return err
			}
			key = d.Keys.User
		}
		if args[0] == "" {
			return commandline.UsageError(cmd, fmt.Errorf("the value of %s is empty", key))
		}
		who := &person{api: c, key: key, name: args[0]}
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
		Long:    "Write a person's records, those of archives too, and the quarantined jobs that name the\nperson, as JSON lines.",
		Example: "  bursar person export erika > erika.ndjson",
	}, func(ctx context.Context, who *person) error {
		out := &counted{Writer: p.Stdout}
		none, err := who.exportRecords(ctx, out)
		if err != nil {
			return err
		}
		jobs, err := who.quarantined(ctx)
		if err == nil && len(jobs) == 0 {
			err = none // near names
		}
		for i := 0; i < len(jobs) && err == nil; i++ {
			err = json.NewEncoder(p.Stdout).Encode(jobs[i])
		}
		if err != nil {
			return err
		}
		p.say("%s, %s", plural(out.lines, "record"), plural(len(jobs), "quarantined job"))
		p.sayElsewhere(who)
		return nil
	})
}

// exportRecords writes the person's records, those of archives too. Where there are none, none
// says which names are near.
func (who *person) exportRecords(ctx context.Context, out *counted) (none, err error) {
	q := who.query()
	if len(who.archives) > 0 {
		q.Archived = new(true)
	}
	err = who.api.ListRecordsAs(ctx, q, "application/x-ndjson", out)
	if err == nil && out.lines == 0 && q.Archived != nil { // the answer is empty then, without near names
		none, q.Archived = found("no record has %s %q", who.key, who.name), nil
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

func (p *Program) personErase() *cobra.Command {
	as, plan := "", false
	cmd := &cobra.Command{
		Use: "erase NAME", Short: "Erase a person; totals stay",
		Long: `Replace each of a person's records by one without the person, and drop the quarantined jobs
that name the person. Totals stay as they are: usage, times, group and all other keys are kept.
Records that run, and records that are archived, are refused, and then nothing is changed.

A value of any key that contains the name becomes the replacement. Keys that describe
a person in other words, such as a job's name, are yours to judge: -plan lists the keys that stay,
-without drops some.`,
		Example: "  bursar person erase erika -plan\n  bursar person erase erika -without job_name",
	}
	var without []string
	fl := cmd.Flags()
	fl.StringVar(&as, "as", "", "the replacement of the `name`; the default is erased- with random letters")
	fl.StringSliceVar(&without, "without", nil, "drop these meta `keys` too")
	fl.BoolVar(&plan, "plan", false, "count, and change nothing")
	return p.onPerson(cmd, func(ctx context.Context, who *person) error {
		e := &erasure{person: who, as: cmp.Or(as, "erased-"+strings.ToLower(rand.Text()[:10])), without: without, say: p.say, stays: map[string]bool{}}
		if strings.Contains(e.as, who.name) {
			return fmt.Errorf("invalid -as %q: it has the name in it", e.as)
		}
		if err := e.look(ctx); err != nil {
			return err
		}
		p.say("%s, %s; keys that stay: %s", plural(e.records, "record"), plural(len(e.jobs), "quarantined job"), strings.Join(e.keys(), ", "))
		if plan {
			p.sayElsewhere(who)
			return nil
		}
		if err := e.erase(ctx); err != nil {
			return fmt.Errorf("not all is erased: %w; go on with: bursar person erase %s -as %s", err, who.name, e.as)
		}
		p.say("Erased: %d records now say %s=%s. The values leave the database by themselves (compaction in the configuration).", e.records, who.key, e.as)
		p.sayElsewhere(who)
		return nil
	})
}

// sayElsewhere names what the commands do not reach.
func (p *Program) sayElsewhere(who *person) {
	var names []string
	for i := range who.archives {
		names = append(names, who.archives[i].Name)
	}
	if len(names) > 0 {
		p.say("Not in this: records of others that name %s in the files of the archives %s.", who.name, strings.Join(names, ", "))
	}
	p.say("Not in this: backups and snapshots, former files of archives that were restored, the raft log until it is replaced, buffers of agents, the scheduler's own accounting, and the configuration.")
}

// query selects the records of the person.
func (who *person) query() *v1.ListRecordsQuery {
	return &v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{who.key: {C: []string{who.name}}}}
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
		q := who.query()
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

// quarantined are the jobs in quarantine that have the name in them.
func (who *person) quarantined(ctx context.Context) (jobs []v1.Quarantined, err error) {
	list, err := who.api.Quarantine(ctx, nil)
	if err != nil {
		return nil, err
	}
	if list.More {
		return nil, fmt.Errorf("more jobs are in quarantine than can be searched: settle some with bursar quarantine retry or drop")
	}
	// Another person's name may begin with this one.
	word := regexp.MustCompile(`(^|[^\pL\pN_-])` + regexp.QuoteMeta(who.name) + `($|[^\pL\pN_-])`)
	for i := range list.Quarantine {
		q := &list.Quarantine[i]
		whole, err := who.api.Quarantined(ctx, q.Agent, q.SourceType, q.SourceLabel, q.ID, nil)
		if err != nil {
			return nil, err
		}
		if word.MatchString(whole.ID + "\n" + whole.Message + "\n" + whole.RecordID + "\n" + whole.Raw) {
			jobs = append(jobs, whole)
		}
	}
	return jobs, nil
}

// erasure erases a person.
type erasure struct {
	*person

	as      string
	without []string
	say     func(string, ...any)

	records int
	jobs    []v1.Quarantined
	stays   map[string]bool // meta keys
}

func (e *erasure) keys() []string {
	var keys []string
	for k := range e.stays {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// batch calls yield with at most so many records of the person; 0 is all.
func (e *erasure) batch(ctx context.Context, most int, yield func(*record.Record) error) error {
	q := e.query()
	q.Limit = most
	address, err := url.Parse(v1.ListRecordsAddress(q, ""))
	if err != nil {
		return err
	}
	for line, err := range e.api.Stream(ctx, address.Path, address.Query()) {
		if err != nil {
			return err
		}
		r, err := wire.DecodeRecordJSON(line)
		if err != nil {
			return err
		}
		if err := yield(&r); err != nil {
			return err
		}
	}
	return nil
}

// look counts, and refuses what cannot be erased yet.
func (e *erasure) look(ctx context.Context) error {
	open := 0
	none := e.batch(ctx, 0, func(r *record.Record) error {
		e.records++
		if r.Open() {
			open++
		}
		for _, m := range e.substitute(r).Meta {
			e.stays[m.Key] = true
		}
		return nil
	})
	switch {
	case none != nil && !errors.Is(none, client.ErrNoMatch):
		return none
	case open > 0:
		return fmt.Errorf("cannot erase %s=%s: %s still running; erase when they have ended", e.key, e.name, plural(open, "record"))
	}
	err := e.refuseArchived(ctx)
	if err != nil {
		return err
	}
	if e.jobs, err = e.quarantined(ctx); err == nil && len(e.jobs) == 0 {
		err = none // near names
	}
	return err
}

// refuseArchived returns an error that names the archives with records of the person.
func (e *erasure) refuseArchived(ctx context.Context) error {
	n, names, err := e.archivedRecords(ctx)
	if err == nil && n > 0 {
		err = fmt.Errorf("cannot erase %s=%s: %s archived in %s; pause the action, run bursar archive restore ACTION ARCHIVE for each, and erase then", e.key, e.name, plural(n, "record"), strings.Join(names, ", "))
	}
	return err
}

// refuseArchivedSince looks again when archives have taken records meanwhile.
func (e *erasure) refuseArchivedSince(ctx context.Context) error {
	now, err := listArchives(ctx, e.api)
	if err != nil || slices.EqualFunc(now, e.archives, func(a, b v1.Archive) bool { return a.Name == b.Name && a.Digest == b.Digest && a.Removed == b.Removed }) {
		return err
	}
	e.archives = now
	return e.refuseArchived(ctx)
}

// substitute is a record in the place of one: the same without the person. Its id follows from
// the other's, so that a repeated erasure adds none twice.
func (e *erasure) substitute(r *record.Record) record.Record {
	out := *r
	out.ID = fmt.Sprintf("erased-%x", sha256.Sum256([]byte(r.ID)))[:7+32]
	out.Meta = nil
	for _, m := range r.Meta {
		if slices.Contains(e.without, m.Key) || strings.Contains(m.Key, e.name) {
			continue
		}
		values := slices.Clone(m.Values)
		for i, v := range values {
			if strings.Contains(v, e.name) {
				values[i] = e.as
			}
		}
		out.Meta = append(out.Meta, record.MetaEntry{Key: m.Key, Values: values})
	}
	return out
}

const (
	// eraseAtOnce is how many records are in the totals twice for a moment.
	eraseAtOnce = 200
	// eraseImport is the name under which substitutes are imported.
	eraseImport = "erased"
)

// erase replaces the records, some at a time, and drops the jobs.
func (e *erasure) erase(ctx context.Context) error {
	for {
		var ids []string
		into, err := BeginImport(ctx, e.api, &ImportSource{Name: eraseImport, Type: eraseImport, Label: eraseImport}, e.say)
		if err != nil {
			return err
		}
		err = e.batch(ctx, eraseAtOnce, func(r *record.Record) error {
			ids = append(ids, r.ID)
			s := e.substitute(r)
			return into.Take(&wire.Frame{Kind: wire.KindRecord, SourceType: eraseImport, SourceLabel: eraseImport, Rank: record.RankImport, ID: s.ID, Record: s, Version: record.Version{Ended: true}})
		})
		if err != nil && !errors.Is(err, client.ErrNoMatch) {
			into.Stop(err)
		}
		counts, err := into.Close()
		switch {
		case err != nil:
			return err
		case counts.Quarantined+counts.Deleted+counts.Conflicting > 0:
			return fmt.Errorf("the cluster did not take all substitutes: %+v", counts)
		case len(ids) == 0:
			return errors.Join(e.drop(ctx), e.refuseArchivedSince(ctx))
		}
		for _, id := range ids {
			if err := e.api.DeleteRecord(ctx, id); err != nil {
				return fmt.Errorf("record %s: %w", strconv.Quote(id), err)
			}
		}
	}
}

func (e *erasure) drop(ctx context.Context) error {
	for i := range e.jobs {
		j := &e.jobs[i]
		if err := e.api.DropQuarantined(ctx, j.Agent, j.SourceType, j.SourceLabel, j.ID); err != nil {
			return err
		}
	}
	return nil
}
