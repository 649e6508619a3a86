package erasure

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Retainer removes the names that a policy keeps no longer.
type Retainer struct {
	Views interface{ View() (*store.View, error) }
	// Write commits a command.
	Write func(context.Context, store.Command) (any, error)
	// Policy and Directory are those of now.
	Policy    Policy
	Directory *accounting.Directory
	Now       time.Time

	keys  *Keys
	state *State
}

const (
	// readAtOnce is how many records are in memory at a time.
	readAtOnce = 2000
	// replaceAtOnce is how many records one command replaces, and replaceBytes about how large
	// it is at most, unless one record is larger.
	replaceAtOnce = 200
	replaceBytes  = 192 << 10
	// dropAtOnce is how many quarantined jobs one command drops.
	dropAtOnce = 500
	// by is who erases, for the marks of the ids.
	by = "retention"
)

// erasedSource is the origin of substitutes. Its counters say how many there are.
func erasedSource() record.Origin {
	return record.Origin{Agent: "erased", Type: "erased", Label: by}
}

// countErased is how many records have lost their names.
func countErased(v *store.View) (int64, error) {
	list, err := v.Counters()
	for i := range list {
		if list[i].Source == erasedSource() {
			return list[i].Counts.Added, err
		}
	}
	return 0, err
}

// NewPolicyKeys says what a policy does to the values of meta keys.
func NewPolicyKeys(d *accounting.Directory, p Policy) *Keys {
	set := d.Settings()
	k := NewKeys(set.UserKey, set.GroupKey, set.HostKey)
	k.Drop = p.Drop
	return k
}

// Run removes what is due, and returns what it did. What an interrupted one has done stays
// done, and the next one goes on.
func (r *Retainer) Run(ctx context.Context) (*State, error) {
	var err error
	if r.state, err = store.With(r.Views, func(v *store.View) (*State, error) { return ReadState(v) }); err != nil {
		return nil, err
	}
	r.keys = NewPolicyKeys(r.Directory, r.Policy)
	until := r.Policy.Until(r.Now)
	archived, more := 0, true
	for after := uint64(0); more; {
		var list []dueRow
		list, after, more, err = r.nextBatch(ctx, until, after, &archived)
		if err == nil {
			err = r.replaceRecords(ctx, list)
		}
		if err != nil {
			return nil, err
		}
	}
	dropped, err := r.dropQuarantined(ctx, until)
	if err != nil {
		return nil, err
	}
	total, err := store.With(r.Views, countErased)
	if err != nil {
		return nil, err
	}
	s := r.state
	s.Last, s.Records, s.Total, s.Quarantined, s.Archived = record.FromStd(r.Now), total-s.Total, total, dropped, archived
	s.Keys = nil
	return s, r.writeState(ctx)
}

var errEnough = errors.New("enough")

// dueRow is a record that has something to lose, with the users whom any origin names in it.
type dueRow struct {
	columns.Row

	names []string
}

// nextBatch returns records that have names, of those with greater numbers. It counts those that
// are archived.
func (r *Retainer) nextBatch(ctx context.Context, until record.Time, after uint64, archived *int) (list []dueRow, last uint64, more bool, err error) {
	view, err := r.Views.View()
	if err != nil {
		return nil, 0, false, err
	}
	q := stoppedBefore(until)
	q.After = after
	last = after
	err = view.Query(ctx, q, func(row *columns.Row) error {
		last = row.Seq
		names, isDue, err := r.keys.findDue(view.Holdings, row)
		switch {
		case err != nil:
			return err
		case !isDue:
		case row.Archived:
			*archived++
		default:
			list = append(list, dueRow{*row, names})
		}
		if len(list) == readAtOnce {
			return errEnough
		}
		return nil
	})
	if more = errors.Is(err, errEnough); more {
		err = nil
	}
	return list, last, more, errors.Join(err, view.Close())
}

// replaceRecords puts substitutes in the place of records.
func (r *Retainer) replaceRecords(ctx context.Context, list []dueRow) error {
	if err := r.makeKeys(ctx, list); err != nil {
		return err
	}
	for len(list) > 0 {
		c := &store.ReplaceCommand{By: by, Now: record.FromStd(r.Now)}
		for size := 0; len(list) > 0 && len(c.Replacements) < replaceAtOnce && size < replaceBytes; list = list[1:] {
			one := r.substituteOf(&list[0])
			c.Replacements = append(c.Replacements, one)
			size += sizeOf(one.Write.Record)
		}
		if _, err := r.Write(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf is about how many bytes a record takes in a command.
func sizeOf(r *record.Record) int {
	n := 100 + len(r.ID)
	for i := range r.Meta {
		n += len(r.Meta[i].Key)
		for _, v := range r.Meta[i].Values {
			n += 2 + len(v)
		}
	}
	return n + 40*len(r.Components)
}

// makeKeys has a secret for the month of each record, and keeps them before they are used.
func (r *Retainer) makeKeys(ctx context.Context, list []dueRow) error {
	if len(list) == 0 {
		return nil
	}
	if r.state.Keys == nil {
		r.state.Keys = map[string][]byte{}
	}
	for i := range list {
		if month := r.Policy.monthName(list[i].ShownStop()); r.state.Keys[month] == nil {
			secret := make([]byte, sha256.Size)
			_, _ = rand.Read(secret) // it never fails
			r.state.Keys[month] = secret
		}
	}
	return r.writeState(ctx)
}

func (r *Retainer) writeState(ctx context.Context) error {
	c, err := r.state.writeCommand()
	if err == nil {
		_, err = r.Write(ctx, c)
	}
	return err
}

// substituteOf is the record in the place of one: the same without its users' names.
func (r *Retainer) substituteOf(row *dueRow) store.Replacement {
	out := row.Shown()
	secret := r.state.Keys[r.Policy.monthName(out.Stop)]
	out.ID = Prefix + hex.EncodeToString(keyedHash(secret, "id", strconv.FormatUint(row.Seq, 10), row.Record.ID)[:16])
	group := ""
	if values := row.Record.Meta.Get(r.Directory.Settings().GroupKey); len(values) > 0 {
		group = values[0]
	}
	out.Meta = r.keys.Meta(out.Meta, "", "")
	for _, name := range row.names {
		out.Meta = r.keys.Meta(out.Meta, name, r.pseudonym(secret, name, group, out.Start))
	}
	if out.Validate() != nil { // a text became too long
		out.Meta = slices.DeleteFunc(out.Meta, func(e record.MetaEntry) bool { return !r.keys.Users[e.Key] && !r.keys.Totals[e.Key] })
	}
	return store.Replacement{ID: row.Record.ID, Seq: row.Seq, Write: record.Write{
		ID: out.ID, Op: record.OpPut, Origin: erasedSource(), Rank: record.RankImport,
		Version: record.Version{Ended: true, Observed: max(row.Version.Observed, 1)}, Record: &out, Stop: record.None,
	}}
}

// pseudonym is what takes the place of a name. It keeps the project, where that follows from
// the user.
func (r *Retainer) pseudonym(secret []byte, name, group string, at record.Time) string {
	code := strings.ToLower(base32.StdEncoding.EncodeToString(keyedHash(secret, "name", name)))[:12]
	project, _ := r.Directory.Project(name, group, at)
	if other, _ := r.Directory.Project(accounting.ErasedUser(code, ""), group, at); other == project {
		project = ""
	}
	return accounting.ErasedUser(code, project)
}

// keyedHash is a keyed hash of texts.
func keyedHash(secret []byte, texts ...string) []byte {
	h := hmac.New(sha256.New, secret)
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return h.Sum(nil)
}

// dropQuarantined drops the jobs in quarantine that last came before a time.
func (r *Retainer) dropQuarantined(ctx context.Context, until record.Time) (dropped int, err error) {
	var list []store.QuarantineKey
	_, err = store.With(r.Views, func(v *store.View) (struct{}, error) {
		return struct{}{}, v.Quarantine(func(q *store.Quarantined) error {
			if q.Last < until {
				list = append(list, store.QuarantineKey{Source: q.Source, ID: q.ID})
			}
			return nil
		})
	})
	for len(list) > 0 && err == nil {
		n := min(len(list), dropAtOnce)
		var result any
		result, err = r.Write(ctx, &store.QuarantineDropCommand{Keys: list[:n]})
		if done, ok := result.(store.DeleteResult); ok {
			dropped += done.Changed
		}
		list = list[n:]
	}
	return dropped, err
}
