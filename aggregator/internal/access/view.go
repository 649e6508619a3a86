package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ErrDenied is wrapped when the principal has no role for what it asks.
var ErrDenied = errors.New("not permitted")

// ErrRows is returned for what has no meta by which it could be shown in part:
// who sees some of the records only does not see it at all.
var ErrRows = errors.New("your access is limited to some of the records, and this is about all of them")

// ErrUnavailable is wrapped when a node can give no picture of the store now: it knows no
// leader, is about to stop, or is fenced. Another node may, or this one later.
var ErrUnavailable = errors.New("the cluster cannot answer now")

// Source gives pictures of the store.
type Source interface {
	// Read returns a picture that holds all that was acknowledged before the
	// call. The caller closes it.
	Read(ctx context.Context) (*store.View, error)
}

// Usages adds up what was used, by the present state of the store.
type Usages interface {
	Answer(ctx context.Context, q sums.Query) (*sums.Answer, error)
}

// Reader gives pictures of the store for principals.
type Reader struct {
	Source Source
	// Usages may be nil where no one asks for usage.
	Usages Usages
	// Reaches remembers what [View.Reach] found; nil looks each time.
	Reaches *Reaches
	// Pseudonyms are those of the cluster; where it is nil, principals that see them see no
	// records.
	Pseudonyms func(context.Context, *store.View) (*Pseudonyms, error)
}

// pseudonymsOf returns what p sees in the place of names; nil where p sees names.
func (r Reader) pseudonymsOf(ctx context.Context, view *store.View, p Principal) (*Pseudonyms, error) {
	switch {
	case !p.Pseudonyms:
		return nil, nil
	case r.Pseudonyms == nil:
		return nil, ErrNames
	}
	return r.Pseudonyms(ctx, view)
}

// Usage answers a question of the records that p may see, as they are now or later.
// q.Where.Allowed does not count. Where p sees pseudonyms, tests of q are of these, but groups
// have names still, from which others follow: only [View.Usage] shows them.
func (r Reader) Usage(ctx context.Context, p Principal, q sums.Query) (*sums.Answer, error) {
	if !p.May(identity.Read) {
		return nil, ErrDenied
	}
	view, err := r.Source.Read(ctx) // what was acknowledged before is here now
	if err != nil {
		return nil, unavailableError(err)
	}
	names, err := r.pseudonymsOf(ctx, view, p)
	if err == nil {
		q.Where.Meta, err = names.resolveTests(ctx, view, q.Where.Meta)
	}
	if err = errors.Join(err, view.Close()); err != nil {
		return nil, err
	}
	q.Where.Allowed = p.Rows.allowedTests()
	answer, err := r.Usages.Answer(ctx, q)
	if errors.Is(err, store.ErrClosed) {
		err = unavailableError(err)
	}
	return answer, err
}

func unavailableError(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

// Read returns what p may see of the store now. The caller closes it. The error wraps
// [ErrUnavailable].
func (r Reader) Read(ctx context.Context, p Principal) (*View, error) {
	view, err := r.Source.Read(ctx)
	if err != nil {
		return nil, unavailableError(err)
	}
	v := NewView(view, p)
	v.reaches = r.Reaches
	if v.pseudonyms, err = r.pseudonymsOf(ctx, view, p); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return v, nil
}

// View is a picture of the store as a principal sees it: no method gives a
// record, or a number of records, that its row filter leaves out. Methods that
// show records return [ErrDenied] to a principal that has no role to read. A view
// belongs to one goroutine at a time and must be closed.
type View struct {
	view       *store.View
	who        Principal
	reaches    *Reaches
	pseudonyms *Pseudonyms // nil: names are shown
}

// NewView takes a picture over for p. It is closed with the view.
func NewView(view *store.View, p Principal) *View { return &View{view: view, who: p} }

// Close ends the view.
func (v *View) Close() error { return v.view.Close() }

// Principal is who sees.
func (v *View) Principal() Principal { return v.who }

// SeesAll reports whether the principal reads all records, and so whatever is said of
// people.
func (v *View) SeesAll() bool { return v.who.SeesAll() }

// Applied returns the index and term up to which the view shows commands.
func (v *View) Applied() (index, term uint64) { return v.view.Applied() }

// Seq returns the number of the last change in the view; 0 before the first.
func (v *View) Seq() uint64 { return v.view.Seq() }

// Hash returns the state hash of the view.
func (v *View) Hash() store.Hash { return v.view.Hash() }

// Cluster returns the cluster's id and version.
func (v *View) Cluster() (id string, version uint32) { return v.view.Cluster() }

// requireRows returns an error when the principal reads no records.
func (v *View) requireRows() error {
	switch {
	case !v.who.May(identity.Read):
		return ErrDenied
	case v.who.Pseudonyms && v.pseudonyms == nil:
		return ErrNames
	}
	return nil
}

// requireWhole returns an error when the principal does not see what is about all
// records, and may name persons.
func (v *View) requireWhole() error {
	if err := errors.Join(v.requireRows(), v.requireNames()); err != nil {
		return err
	}
	if !v.who.Rows.All() {
		return ErrRows
	}
	return nil
}

// Whole returns an error when the principal does not see all records: what is about
// all of them is not for it.
func (v *View) Whole() error { return v.requireWhole() }

// requireFigures returns an error when the principal sees no figures of the whole.
func (v *View) requireFigures() error {
	if v.who.May(identity.Monitor) {
		return nil
	}
	if err := v.requireRows(); err != nil || v.who.Rows.All() {
		return err
	}
	return ErrRows
}

// requireNamedFigures is requireFigures for those that may name persons.
func (v *View) requireNamedFigures() error { return cmp.Or(v.requireNames(), v.requireFigures()) }

// MayFigures returns the error that figures of the whole would come with for the
// principal: [ErrRows] or [ErrDenied], or none. It reads nothing.
func (v *View) MayFigures() error { return v.requireFigures() }

// Count returns how many records are shown. The error is as that of Figures: counting the
// records of a restricted reader would read all of them.
func (v *View) Count() (uint64, error) {
	if err := v.requireFigures(); err != nil {
		return 0, err
	}
	return v.view.Count(), nil
}

// Archives returns the archives, as [store.View.Archives] does.
func (v *View) Archives() ([]store.Archive, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return v.view.Archives(), nil
}

// ArchivesOf names the archives of the time of a query.
func (v *View) ArchivesOf(q *store.Query) []string { return v.view.ArchivesOf(q) }

// Get returns the row that is shown under the id; false when none is.
func (v *View) Get(id string) (columns.Row, bool, error) {
	if err := v.requireRows(); err != nil {
		return columns.Row{}, false, err
	}
	row, ok, err := v.view.Get(id)
	if err != nil || !ok || !v.who.Rows.hasMeta(row.Record.Meta) {
		return columns.Row{}, false, err
	}
	return *v.pseudonyms.maskRow(&row), true, nil
}

// History returns the rows in whose place row came, the newest first and at most so
// many, tombstones included. Whole says that these are all: of a run that went on,
// and of a block that was rewritten, the store keeps none. Those that the principal
// may not see are left out.
func (v *View) History(row *columns.Row, most int) (list []columns.Row, whole bool, err error) {
	if err := v.requireRows(); err != nil {
		return nil, false, err
	}
	for seq, n := row.Supersedes, 0; seq != 0; n++ {
		old, ok, err := v.view.RowAt(seq)
		if err != nil || !ok || n == most {
			return list, false, err
		}
		if v.who.Rows.hasMeta(old.Record.Meta) {
			list = append(list, *v.pseudonyms.maskRow(&old))
		}
		seq = old.Supersedes
	}
	return list, true, nil
}

// Entry returns what is held under the id; an id that is not known has an entry
// that holds nothing. With a row filter an id is known when its shown record
// passes, and of its entry only the holdings remain that pass too.
func (v *View) Entry(id string) (record.Entry, error) {
	if err := v.requireRows(); err != nil {
		return record.Entry{ID: id}, err
	}
	e, err := v.view.Entry(id)
	if err != nil {
		return e, err
	}
	if !v.cutEntry(&e) {
		return record.Entry{ID: id}, nil
	}
	v.pseudonyms.maskEntry(&e)
	return e, nil
}

// mostJobIDs is how many ids of a job are looked at for those that a principal sees.
const mostJobIDs = 1000

// JobIDs calls yield with the ids of a job of which the principal sees anything, as
// [store.View.JobIDs] does.
func (v *View) JobIDs(job string, yield func(id string) error) (whole bool, err error) {
	if err := v.requireRows(); err != nil {
		return false, err
	}
	seen := 0
	whole, err = v.view.JobIDs(job, func(id string) error {
		if seen++; seen > mostJobIDs {
			return errFound
		}
		e, err := v.Entry(id)
		if err != nil || len(e.Holdings) == 0 && !e.Deleted {
			return err
		}
		return yield(id)
	})
	if errors.Is(err, errFound) {
		return false, nil
	}
	return whole, err
}

// cutEntry takes out of an entry what the principal does not see; false when nothing
// may remain of it.
func (v *View) cutEntry(e *record.Entry) bool {
	if v.who.Rows.All() {
		return true
	}
	if shown := e.Shown(); shown == nil || !v.who.Rows.hasMeta(shown.Meta) {
		return false
	}
	var seen []record.Holding
	for i := range e.Holdings {
		if r := e.Holdings[i].Shown(); r != nil && v.who.Rows.hasMeta(r.Meta) {
			seen = append(seen, e.Holdings[i])
		}
	}
	e.Holdings = seen
	return true
}

// Query calls yield with the rows of q in its order, as [store.View.Query] does.
// In the change feed of a principal with a row filter, a record that leaves what
// it may see is a tombstone, as far as the store still knows what it was; see
// DESIGN.md.
func (v *View) Query(ctx context.Context, q store.Query, yield func(*columns.Row) error) error {
	if err := v.requireRows(); err != nil {
		return err
	}
	var err error
	if q.Meta, err = v.pseudonyms.resolveTests(ctx, v.view, q.Meta); err == nil {
		err = v.pseudonyms.maySort(&q)
	}
	if err != nil {
		return err
	}
	yield = v.pseudonyms.maskRows(yield)
	if v.who.Rows.All() {
		return v.view.Query(ctx, q, yield)
	}
	if q.Tombstones {
		return v.feedQuery(ctx, q, yield)
	}
	q.Allowed = v.who.Rows.allowedTests()
	return v.view.Query(ctx, q, yield)
}

// Scan gives the rows of q that the principal sees to scanners, as [store.View.ScanLeased] does.
// Loose rows are as [View.Query] has them; of a row of a block [View.Shown] has what the principal
// sees of its meta. Tombstones of q do not count.
func (v *View) Scan(ctx context.Context, q store.Query, newScanner func() store.Scanner) error {
	if err := v.requireRows(); err != nil {
		return err
	}
	var err error
	if q.Meta, err = v.pseudonyms.resolveTests(ctx, v.view, q.Meta); err != nil {
		return err
	}
	if q.Tombstones = false; !v.who.Rows.All() {
		q.Allowed = v.who.Rows.allowedTests()
	}
	return v.view.ScanLeased(ctx, q, func() store.Scanner {
		s := newScanner()
		s.Loose = v.pseudonyms.maskRows(s.Loose)
		return s
	})
}

// BlocksMayHaveKey reports whether a row of a block can have a meta key: false is certain.
func (v *View) BlocksMayHaveKey(key string) bool { return v.view.BlocksMayHaveKey(key) }

// QueryWhole is [View.Query] with the archived records of the query as well, which get their
// details before its conditions on meta and the principal's row filter look at them. The
// query's Tombstones and Details do not count.
func (v *View) QueryWhole(ctx context.Context, q store.Query, details *store.Details, yield func(*columns.Row) error) error {
	if err := v.requireRows(); err != nil {
		return err
	}
	meta, err := v.pseudonyms.resolveTests(ctx, v.view, q.Meta)
	if err == nil {
		err = v.pseudonyms.maySort(&q)
	}
	if err != nil {
		return err
	}
	yield = v.pseudonyms.maskRows(yield)
	limit := q.Limit
	if len(q.Meta) > 0 || !v.who.Rows.All() {
		q.Limit = 0
	}
	q.Meta, q.Details, q.Tombstones = nil, false, false
	n := 0
	err = v.view.Query(ctx, q, func(row *columns.Row) error {
		whole, err := details.Whole(ctx, row)
		if err != nil || !store.Match(meta, &whole.Record) || !v.who.Rows.hasMeta(whole.Record.Meta) {
			return err
		}
		if err := yield(&whole); err != nil {
			return err
		}
		if n++; n == limit {
			return errLimit
		}
		return nil
	})
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// errLimit ends a query whose limit is reached.
var errLimit = errors.New("limit reached")

// Details returns what gives the archived records of a query their details. The caller
// closes it.
func (v *View) Details(ctx context.Context, q *store.Query, files store.ArchiveFiles) *store.Details {
	return v.view.NewDetails(ctx, q, files)
}

// OpenRecords calls yield with every record whose run goes on.
func (v *View) OpenRecords(ctx context.Context, yield func(*columns.Row) error) error {
	return v.Query(ctx, store.Query{Open: store.OnlyOpen}, yield)
}

// MetaCounts returns how many records have each value of the key.
func (v *View) MetaCounts(ctx context.Context, key string) (map[string]uint64, error) {
	if err := v.requireNamedFigures(); err != nil {
		return nil, err
	}
	return v.view.MetaCounts(ctx, key)
}

// Conflicts calls yield with the entries whose origins are in conflict, by id.
func (v *View) Conflicts(yield func(*record.Entry) error) error {
	if err := v.requireRows(); err != nil {
		return err
	}
	return v.view.Conflicts(func(e *record.Entry) error {
		if !v.cutEntry(e) || !e.Conflict() {
			return nil
		}
		v.pseudonyms.maskEntry(e)
		return yield(e)
	})
}

// WaitingStops calls yield with the entries that have a stop without a body. A
// stop has no meta: the error is [ErrRows] for who sees some of the records only.
func (v *View) WaitingStops(yield func(*record.Entry) error) error {
	if err := v.requireWhole(); err != nil {
		return err
	}
	return v.view.WaitingStops(yield)
}

// Held calls yield with the entries of which more is held than is shown, by id. The
// error is as that of WaitingStops.
func (v *View) Held(yield func(*record.Entry) error) error {
	if err := v.requireWhole(); err != nil {
		return err
	}
	return v.view.Held(yield)
}

// HeldAfter is Held for the entries with a greater id.
func (v *View) HeldAfter(id string, yield func(*record.Entry) error) error {
	if err := v.requireWhole(); err != nil {
		return err
	}
	return v.view.HeldAfter(id, yield)
}

// Holdings returns what each origin says of the run of a row that is shown. The error is as that
// of WaitingStops.
func (v *View) Holdings(row *columns.Row) ([]record.Holding, error) {
	if err := v.requireWhole(); err != nil {
		return nil, err
	}
	return v.view.Holdings(row)
}

// Quarantine calls yield with every quarantined job. Raw input has no meta: the
// error is [ErrRows] for who sees some of the records only.
func (v *View) Quarantine(yield func(*store.Quarantined) error) error {
	if err := v.requireWhole(); err != nil {
		return err
	}
	return v.view.Quarantine(yield)
}

// Quarantined returns one quarantined job; false when there is none. The error is
// [ErrRows] as for Quarantine.
func (v *View) Quarantined(source record.Origin, id string) (store.Quarantined, bool, error) {
	if err := v.requireWhole(); err != nil {
		return store.Quarantined{}, false, err
	}
	return v.view.Quarantined(source, id)
}

// Gaps returns what the agents could not hand over, by source. The error is as
// that of Figures.
func (v *View) Gaps() ([]store.Gap, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return v.view.Gaps()
}

// Figures are the numbers of what is odd.
type Figures struct{ Conflicts, Waiting, Quarantined int }

// Figures says how much is odd in the whole store; it reads nothing. The error is [ErrRows] for who
// sees some of the records only and does not monitor.
func (v *View) Figures() (f Figures, err error) {
	if err := v.requireFigures(); err != nil {
		return f, err
	}
	odd := v.view.Anomalies()
	return Figures{Conflicts: int(odd.Conflicts), Waiting: int(odd.Waiting), Quarantined: int(odd.Quarantined)}, nil
}

// QuarantinedOf returns how many jobs of a source are quarantined, of which Figures has the
// sum. The error is as that of Figures.
func (v *View) QuarantinedOf(source record.Origin) (uint64, error) {
	if err := v.requireFigures(); err != nil {
		return 0, err
	}
	return v.view.QuarantinedOf(source), nil
}

// Agents returns the cursors of all agents that were ever pulled, by name. The
// error is as that of Figures.
func (v *View) Agents() ([]store.Cursor, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return v.view.Agents()
}

// Counters returns what became of the writes of every source. The error is as
// that of Figures.
func (v *View) Counters() ([]store.SourceCounts, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return v.view.Counters()
}

// Census returns what sources said last of their jobs. The error is as that of
// Figures.
func (v *View) Census() ([]store.Fact, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return v.view.Facts(store.FactCensus)
}

// Days compares the days of a window with what schedulers have, by source. The
// error is as that of Figures.
func (v *View) Days(ctx context.Context, w completeness.Window) ([]completeness.Day, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return completeness.Look(ctx, v.view, w)
}

// Document returns a value of [store.DocumentCommand]; nil and false when there
// is none. Documents are the daemon's own.
func (v *View) Document(space, key string) ([]byte, bool, error) {
	if err := v.requireNamedFigures(); err != nil {
		return nil, false, err
	}
	return v.view.Document(space, key)
}

// Documents calls yield with the values of a space, as [store.View.Documents].
func (v *View) Documents(space, prefix string, yield func(store.Document) error) error {
	if err := v.requireNamedFigures(); err != nil {
		return err
	}
	return v.view.Documents(space, prefix, yield)
}
