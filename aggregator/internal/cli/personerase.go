package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func (p *Program) personErase() *cobra.Command {
	as, plan := "", false
	cmd := &cobra.Command{
		Use: "erase NAME", Short: "Erase a person; totals stay",
		Long: `Replace each of a person's records by one without the person, and drop the quarantined jobs
that name the person. Totals stay as they are: usage, times and group are kept.
Records that run, and records that are archived, are refused, and then nothing is changed.
The audit log has the replacement, too, where the name stands as a word.

Origins may name different users of a run, such as the scheduler and an import. Where an origin that
is not shown names the person, the record is replaced, too: by one of the user that is shown.

In the key that names users the name becomes the replacement. In the values of other keys, such
as a job's name or a path, it does where it stands as a word: the name al is not in alpha, al.b
or x-al. Keys on which totals depend, such as group_id, site_id, project and cluster, are never
changed; where a value of one has the name in it, the command says so.

Tokens, users, sessions, what actions have sent, and all else that may name the person stay: the
command lists it, with what removes it.

Keys that describe a person in other words are yours to judge: -plan lists the keys that stay,
-without drops some.`,
		Example: "  bursar person erase erika -plan\n  bursar person erase erika -without job_name",
	}
	var without []string
	fl := cmd.Flags()
	fl.StringVar(&as, "as", "", "the replacement of the `name`; the default is erased- with random letters")
	fl.StringSliceVar(&without, "without", nil, "drop these meta `keys` too")
	fl.BoolVar(&plan, "plan", false, "count, and change nothing")
	return p.onPerson(cmd, func(ctx context.Context, who *person) error {
		e := &personErasure{
			person: who, as: cmp.Or(as, erasure.Prefix+strings.ToLower(rand.Text()[:10])), say: p.say,
			keys: who.newKeys(without), stays: map[string]bool{}, same: map[string]bool{},
		}
		switch {
		case revealsName(as, who.name):
			return fmt.Errorf("invalid -as %q: it has the name in it", e.as)
		case e.keys.Totals[who.key]:
			return fmt.Errorf("invalid -key %q: totals depend on it; use a key that names users", who.key)
		}
		if err := e.checkErasable(ctx); err != nil {
			if errors.Is(err, client.ErrNoMatch) && !plan {
				err = errors.Join(err, e.eraseFromAudit(ctx)) // who looked for the name is there, too
			}
			return err
		}
		p.say("%s%s, %s; keys that stay: %s", view.Plural(e.records, "record"), unshownPhrase(e.unshown), view.Plural(len(e.jobs), "quarantined job"), strings.Join(slices.Sorted(maps.Keys(e.stays)), ", "))
		e.sayWhatStays()
		if plan {
			p.sayElsewhere(ctx, who)
			return nil
		}
		if err := e.eraseRecords(ctx); err != nil {
			return fmt.Errorf("not all is erased: %w; go on with: bursar person erase %s -as %s", err, who.name, e.as)
		}
		if err := e.eraseFromAudit(ctx); err != nil {
			return fmt.Errorf("the audit log still names %s: %w; go on with: bursar person erase %s -as %s", who.name, err, who.name, e.as)
		}
		e.sayErased()
		p.sayElsewhere(ctx, who)
		return nil
	})
}

// sayErased says what has changed.
func (e *personErasure) sayErased() {
	others := ""
	if e.unshown > 0 {
		others = fmt.Sprintf(", and %s of others now lack what was not shown", view.Plural(e.unshown, "record"))
	}
	e.say("Erased: %d records now say %s=%s%s. The values of these records leave the database and the raft log by themselves (compaction in the configuration).", e.records, e.key, e.as, others)
}

// revealsName reports whether a replacement has the name between what separates its parts.
func revealsName(as, name string) bool {
	separates := func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }
	parts := strings.FieldsFunc(strings.TrimPrefix(as, erasure.Prefix), separates)
	return erasure.HasWord(as, name) || slices.Contains(parts, name)
}

// personErasure erases a person.
type personErasure struct {
	*person

	as  string
	say func(string, ...any)

	keys    *erasure.Keys
	records int
	unshown int // records of others of which an origin that is not shown names the person
	jobs    []v1.Quarantined
	stays   map[string]bool // meta keys
	same    map[string]bool // key=value with the name, where totals depend on the key
}

// sayWhatStays names values with the name that are not changed, and what the directory says of
// the name.
func (e *personErasure) sayWhatStays() {
	if len(e.same) > 0 {
		e.say("These values stay, because totals depend on their keys: %s.", strings.Join(slices.Sorted(maps.Keys(e.same)), ", "))
	}
	if places := namesInDirectory(&e.directory, e.name); len(places) > 0 {
		e.say("The directory has the name %s: %s. Where it means the person, write %s in its place at the same time, or totals by project, PI and group change.", e.name, strings.Join(places, ", "), e.as)
	}
}

// streamRecords calls yield for at most so many records of the person, and of those of others of
// which an origin that is not shown names the person; 0 is all.
func (e *personErasure) streamRecords(ctx context.Context, most int, yield func(*record.Record) error) error {
	left := most
	none := e.streamShown(ctx, most, func(r *record.Record) error {
		left--
		return yield(r)
	})
	if none != nil && !errors.Is(none, client.ErrNoMatch) || most > 0 && left == 0 {
		return none
	}
	found := false
	for entry, err := range e.unshownRecords(ctx) {
		if err == nil && entry.Record != nil {
			found, left = true, left-1
			err = e.yieldUnshown(&entry, yield)
		}
		if err != nil || most > 0 && left == 0 {
			return err
		}
	}
	if found {
		return nil
	}
	return none
}

// yieldUnshown calls yield with the record that is shown of an entry.
func (e *personErasure) yieldUnshown(entry *v1.Entry, yield func(*record.Record) error) error {
	if entry.Record.Archived {
		return fmt.Errorf("cannot erase %s=%s: an origin of record %s names the person, and its details are archived; restore them by bursar archive restore, and erase then", e.key, e.name, entry.RecordID)
	}
	text, err := json.Marshal(entry.Record)
	if err != nil {
		return err
	}
	r, err := wire.DecodeRecordJSON(text)
	if err != nil {
		return fmt.Errorf("record %s: %w", entry.RecordID, err)
	}
	return yield(&r)
}

// streamShown calls yield for at most so many records of the person; 0 is all.
func (e *personErasure) streamShown(ctx context.Context, most int, yield func(*record.Record) error) error {
	q := e.personQuery()
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

// checkErasable counts the records, and refuses what cannot be erased yet.
func (e *personErasure) checkErasable(ctx context.Context) error {
	open := 0
	none := e.streamRecords(ctx, 0, func(r *record.Record) error {
		if slices.Contains(r.Meta.Get(e.key), e.name) {
			e.records++
		} else {
			e.unshown++
		}
		if r.Open() {
			open++
		}
		for _, m := range e.substituteOf(r).Meta {
			e.stays[m.Key] = true
			for _, v := range m.Values {
				if e.keys.Totals[m.Key] && erasure.HasWord(v, e.name) {
					e.same[m.Key+"="+v1.JoinList(v)] = true
				}
			}
		}
		return nil
	})
	switch {
	case none != nil && !errors.Is(none, client.ErrNoMatch):
		return none
	case open > 0:
		return fmt.Errorf("cannot erase %s=%s: %s still running; erase once all have ended", e.key, e.name, view.Plural(open, "record"))
	}
	err := e.refuseArchived(ctx)
	if err != nil {
		return err
	}
	if e.jobs, err = e.quarantinedJobs(ctx); err == nil && len(e.jobs) == 0 {
		err = none // near names
	}
	return err
}

// refuseArchived returns an error that names the archives with records of the person.
func (e *personErasure) refuseArchived(ctx context.Context) error {
	n, names, err := e.archivedRecords(ctx)
	if err == nil && n > 0 {
		err = fmt.Errorf("cannot erase %s=%s: %s archived in %s; pause the action, run bursar archive restore ACTION ARCHIVE for each, and erase then", e.key, e.name, view.Plural(n, "record"), strings.Join(names, ", "))
	}
	return err
}

// refuseArchivedSince looks again when archives have taken records meanwhile.
func (e *personErasure) refuseArchivedSince(ctx context.Context) error {
	now, err := listArchives(ctx, e.api)
	if err != nil || slices.EqualFunc(now, e.archives, func(a, b v1.Archive) bool { return a.Name == b.Name && a.Digest == b.Digest && a.Removed == b.Removed }) {
		return err
	}
	e.archives = now
	return e.refuseArchived(ctx)
}

// substituteOf is the record in the place of one: the same without the person. Its id follows from
// the other's, so that a repeated erasure adds none twice.
func (e *personErasure) substituteOf(r *record.Record) record.Record {
	out := *r
	out.ID, out.Meta = erasure.ID(r.ID), e.keys.Meta(r.Meta, e.name, e.as)
	return out
}

// newKeys says what becomes of the values of the person's records.
func (who *person) newKeys(drop []string) *erasure.Keys {
	keys := &who.directory.Keys
	k := erasure.NewKeys(keys.User, keys.Group, keys.Host, who.key)
	k.Drop = drop
	return k
}

const (
	// eraseAtOnce is how many records are in the totals twice for a moment.
	eraseAtOnce = 200
	// eraseImport is the name under which substitutes are imported.
	eraseImport = "erased"
)

// eraseRecords replaces the records, some at a time, and drops the jobs.
func (e *personErasure) eraseRecords(ctx context.Context) error {
	for {
		var ids []string
		into, err := BeginImport(ctx, e.api, &ImportSource{Name: eraseImport, Type: eraseImport, Label: eraseImport}, e.say)
		if err != nil {
			return err
		}
		err = e.streamRecords(ctx, eraseAtOnce, func(r *record.Record) error {
			ids = append(ids, r.ID)
			s := e.substituteOf(r)
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
			return errors.Join(e.dropJobs(ctx), e.refuseArchivedSince(ctx))
		}
		for _, id := range ids {
			if err := e.api.DeleteRecord(ctx, id); err != nil {
				return fmt.Errorf("record %s: %w", strconv.Quote(id), err)
			}
		}
	}
}

// eraseFromAudit replaces the name in the audit log. It comes last, since what this command asks
// for is noted there, too.
func (e *personErasure) eraseFromAudit(ctx context.Context) error {
	done, err := e.api.EraseFromAudit(ctx, v1.AuditErasure{Name: e.name, As: e.as})
	if err == nil && done.Entries > 0 {
		e.say("The audit log has %s in the place of the name: entries changed: %d.", e.as, done.Entries)
	}
	return err
}

func (e *personErasure) dropJobs(ctx context.Context) error {
	for i := range e.jobs {
		j := &e.jobs[i]
		if err := e.api.DropQuarantined(ctx, j.Agent, j.SourceType, j.SourceLabel, j.ID); err != nil {
			return err
		}
	}
	return nil
}
