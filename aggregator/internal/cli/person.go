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
}

// onPerson makes a command about the person of its argument.
func (p *Program) onPerson(cmd *cobra.Command, run func(context.Context, *person) error) *cobra.Command {
	conn, key := p.connect(cmd), ""
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringVar(&key, "key", "", "the meta `key` that names people; the default is the directory's, user_id")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
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
		return run(cmd.Context(), &person{c, key, args[0]})
	}
	return cmd
}

func (p *Program) personExport() *cobra.Command {
	return p.onPerson(&cobra.Command{
		Use: "export NAME", Short: "Write a person's records and quarantined jobs as JSON lines",
		Example: "  bursar person export erika > erika.ndjson",
	}, func(ctx context.Context, who *person) error {
		out := &counted{Writer: p.Stdout}
		if err := who.api.ListRecordsAs(ctx, who.query(), "application/x-ndjson", out); err != nil {
			return err
		}
		jobs, err := who.quarantined(ctx)
		for i := 0; i < len(jobs) && err == nil; i++ {
			err = json.NewEncoder(p.Stdout).Encode(jobs[i])
		}
		if err != nil {
			return err
		}
		p.say("%d records, %d quarantined jobs", out.lines, len(jobs))
		return p.elsewhere(ctx, who)
	})
}

func (p *Program) personErase() *cobra.Command {
	as, plan := "", false
	cmd := &cobra.Command{
		Use: "erase NAME", Short: "Erase a person; totals stay",
		Long: `Replace each of a person's records by one without the person, and drop the quarantined jobs
that name the person. Totals stay as they are: usage, times, group and all other keys are kept.

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
		p.say("%d records, %d quarantined jobs; keys that stay: %s", e.records, len(e.jobs), strings.Join(e.keys(), ", "))
		if plan {
			return p.elsewhere(ctx, who)
		}
		if err := e.erase(ctx); err != nil {
			return fmt.Errorf("not all is erased: %w; go on with: bursar person erase %s -as %s", err, who.name, e.as)
		}
		p.say("Erased: %d records now say %s=%s. The values leave the database by themselves (compaction in the configuration).", e.records, who.key, e.as)
		return p.elsewhere(ctx, who)
	})
}

// elsewhere names what the commands do not reach.
func (p *Program) elsewhere(ctx context.Context, who *person) error {
	list, err := who.api.Archives(ctx, nil)
	if err != nil {
		return err
	}
	var names []string
	for i := range list.Archives {
		names = append(names, list.Archives[i].Name)
	}
	if len(names) > 0 {
		p.say("Not in this: the files of the archives %s.", strings.Join(names, ", "))
	}
	p.say("Not in this: backups and snapshots, the raft log until it is replaced, buffers of agents, the scheduler's own accounting, and the configuration.")
	return nil
}

// query selects the records of the person.
func (who *person) query() *v1.ListRecordsQuery {
	return &v1.ListRecordsQuery{Meta: map[string]v1.MetaTest{who.key: {C: []string{who.name}}}}
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

// stored is a record of the person.
type stored struct {
	record.Record

	archived bool
}

// batch calls yield with at most so many records of the person; 0 is all.
func (e *erasure) batch(ctx context.Context, most int, yield func(*stored) error) error {
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
		var more struct{ Archived bool }
		if err := json.Unmarshal(line, &more); err != nil {
			return err
		}
		r, err := wire.DecodeRecordJSON(line)
		if err != nil {
			return err
		}
		if err := yield(&stored{r, more.Archived}); err != nil {
			return err
		}
	}
	return nil
}

// look counts, and refuses what cannot be erased yet.
func (e *erasure) look(ctx context.Context) error {
	open, archived := 0, 0
	err := e.batch(ctx, 0, func(r *stored) error {
		e.records++
		if r.Open() {
			open++
		}
		if r.archived {
			archived++
		}
		for _, m := range e.substitute(&r.Record).Meta {
			e.stays[m.Key] = true
		}
		return nil
	})
	none := err
	switch {
	case err != nil && !errors.Is(err, client.ErrNoMatch):
		return err
	case open > 0:
		return fmt.Errorf("%d records of %s=%s are still running: erase when they have ended", open, e.key, e.name)
	case archived > 0:
		return fmt.Errorf("the details of %d records of %s=%s are archived: restore the archives first (bursar archive list, bursar archive restore NAME)", archived, e.key, e.name)
	}
	if e.jobs, err = e.quarantined(ctx); err == nil && len(e.jobs) == 0 {
		err = none // near names
	}
	return err
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
		err = e.batch(ctx, eraseAtOnce, func(r *stored) error {
			ids = append(ids, r.ID)
			s := e.substitute(&r.Record)
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
			return e.drop(ctx)
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
