package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
)

// server is a running AUDITOR, or a bursar.
type server struct {
	source  *source
	address *url.URL
	client  *client.Client
	path    string // of its records; "": not known yet
	relays  relays
}

func newServer(s *source, cfg *sdk.Config, address string) (*server, error) {
	opts := client.Options{Address: address, Timeout: s.Timeout, UserAgent: "bursar-source-auditor"}
	if strings.HasPrefix(address, "https:") {
		files := cfg.TLS
		if s.TLS != nil {
			files = sdk.TLSFiles{CA: cmp.Or(s.TLS.CA, files.CA), Cert: cmp.Or(s.TLS.Cert, files.Cert), Key: cmp.Or(s.TLS.Key, files.Key)}
		}
		var err error
		if opts.TLS, err = client.LoadTLS(files.CA, files.Cert, files.Key); err != nil {
			return nil, err
		}
	}
	where, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c, err := client.New(opts)
	return &server{source: s, address: where, client: c}, err
}

// name implements input.
func (s *server) name() string { return s.address.Redacted() }

// The routes of records: a bursar's, which have all that it knows, and AUDITOR's.
const (
	ownPath     = "/v1/records"
	auditorPath = "/records"
)

// detectServer finds out what the server is.
func (s *server) detectServer(ctx context.Context) error {
	if s.path != "" {
		return nil
	}
	s.path = ownPath
	err := s.fetchRecords(ctx, url.Values{"limit": {"1"}}, func([]byte) error { return nil })
	if errors.Is(err, client.ErrNotFound) {
		s.path, err = auditorPath, nil
	}
	if err != nil {
		s.path = ""
	}
	return err
}

// defaultKinds are those of components that the server's answers do not say.
func (s *server) defaultKinds() record.Kinds {
	if s.path == ownPath {
		return nil
	}
	return s.source.kinds
}

// fetchRecords asks for records, and yields each as it comes.
func (s *server) fetchRecords(ctx context.Context, query url.Values, yield func(raw []byte) error) error {
	if s.path == ownPath {
		query.Set("format", "ndjson")
	}
	busy := sdk.Idle(ctx) // the client has a deadline of its own
	defer func() { busy() }()
	for raw, err := range s.client.Raw(ctx, s.path, query) {
		busy()
		if err != nil {
			return err
		}
		if s.path != ownPath || s.source.Relayed || !s.relays.noteRelayed(raw) {
			if err := yield(raw); err != nil {
				return err
			}
		}
		busy = sdk.Idle(ctx)
	}
	return ctx.Err()
}

// archivedField asks a bursar for the records of its archives too.
const archivedField = "archived"

// fetchWhole is fetch with the archived records of a bursar, which have stopped in [from, to).
// Archives that it cannot read are refused by name, and the other records come.
func (s *server) fetchWhole(ctx context.Context, c *collection, query url.Values, from int64, to time.Time, yield func(raw []byte) error) error {
	if s.path != ownPath {
		return s.fetchRecords(ctx, query, yield)
	}
	whole := maps.Clone(query)
	whole.Set(archivedField, "true")
	err := s.fetchRecords(ctx, whole, yield)
	if !errors.Is(err, client.ErrArchive) {
		return err
	}
	if err := s.refuseArchives(ctx, c, from, to, err); err != nil {
		return err
	}
	return s.fetchRecords(ctx, query, yield)
}

// refuseArchives refuses each archive of the time, once in a collection.
func (s *server) refuseArchives(ctx context.Context, c *collection, from int64, to time.Time, why error) error {
	list, err := s.client.Archives(ctx, nil)
	if err != nil {
		return errors.Join(why, err)
	}
	for i := range list.Archives {
		a := &list.Archives[i]
		if a.State == "checking" || unixMicros(a.To.Time) <= from || !to.IsZero() && !a.From.Before(to) || c.unread[a.Name] {
			continue
		}
		c.unread[a.Name] = true
		c.batch.Refused = append(c.batch.Refused, sdk.Refused{
			Run:     "archive " + a.Name,
			Message: fmt.Sprintf("archive %s of the server, from %s to %s, is left out with %d records: %v", a.Name, a.From.UTC().Format(time.DateOnly), a.To.UTC().Format(time.DateOnly), a.Removed, why),
		})
	}
	return nil
}

// stopQuery asks for records by their stop.
func stopQuery(from int64, to time.Time) url.Values {
	q := url.Values{}
	if from > 0 {
		q.Set("stop_time[gte]", record.Time(from).String())
	} else {
		q.Set("stop_time[gte]", "1970-01-01T00:00:00Z") // so that open ones do not come
	}
	if !to.IsZero() {
		q.Set("stop_time[lt]", record.FromStd(to).String())
	}
	return q
}

// collectRecords implements input: pages in the order of stop, and then the open records. All that a
// bursar has is one page, since it reads an archive again for each answer.
func (s *server) collectRecords(ctx context.Context, c *collection, at *place) error {
	if err := s.detectServer(ctx); err != nil {
		return err
	}
	from, to, deep := s.readRange(c, at)
	p := &pages{server: s, collection: c, at: at, to: to, from: from, limit: c.Page, begun: from}
	for more := true; more; {
		var err error
		if more, err = p.nextPage(ctx); err != nil {
			return err
		}
	}
	// AUDITOR answers as if it had nothing more when its database fails.
	if err := s.client.Health(ctx); err != nil {
		return fmt.Errorf("health check behind the last record: %w", err)
	}
	if err := s.collectOpen(ctx, c, at); err != nil {
		return err
	}
	if deep {
		c.deep = c.now()
	}
	c.batch.Refused = append(c.batch.Refused, s.relays.drainRefused()...)
	return c.flush(ctx)
}

// readRange is from when on and until when to read, and whether that is by deep_overlap.
func (s *server) readRange(c *collection, at *place) (from int64, to time.Time, deep bool) {
	if w := c.from.Window; w != nil {
		return max(unixMicros(w.From), 0), w.To, false
	}
	overlap := c.Overlap
	if deep = c.now().Sub(c.deep) >= c.DeepInterval; deep {
		overlap = max(overlap, c.DeepOverlap)
	}
	return max(at.Stop-(overlap+c.from.Rewind).Microseconds(), 0), time.Time{}, deep
}

// pages is a walk through the records in the order of stop.
type pages struct {
	*server

	collection *collection
	at         *place
	from       int64           // stop of the first record of the next page
	same       map[string]bool // records with the latest stop
	to         time.Time
	limit      int
	begun      int64
}

// nextPage reads a page; more is false when there was nothing new in it.
func (p *pages) nextPage(ctx context.Context) (more bool, err error) {
	query := stopQuery(p.from, p.to)
	if p.path != ownPath {
		query.Set("limit", strconv.Itoa(p.limit))
	}
	n, last := 0, p.from
	var failed error // of what was read
	err = p.fetchWhole(ctx, p.collection, query, p.from, p.to, func(raw []byte) error {
		n++
		last, failed = p.addInOrder(ctx, raw, last)
		return failed
	})
	advanced := last > p.from
	// A bursar breaks off where an archive differs, and says why when it is asked from there.
	if err != nil && (p.path != ownPath || failed != nil || !advanced || ctx.Err() != nil) {
		return false, err
	}
	full := n >= p.limit
	p.from = last
	switch {
	case advanced:
		p.limit = p.collection.Page
	case full: // more records have this stop than a page
		p.limit *= 2
	}
	return advanced || full, nil
}

// addInOrder hands on a record behind that which stopped last, and returns its stop.
func (p *pages) addInOrder(ctx context.Context, raw []byte, last int64) (int64, error) {
	r, ok := p.collection.decodeRecord(raw, p.defaultKinds())
	switch {
	case !ok || r.Open():
		return last, p.collection.flushIfFull(ctx)
	case int64(r.Stop) < last:
		return last, fmt.Errorf("the server's records are not in the order of their stop: %s has %s behind %s", r.ID, r.Stop, record.Time(last))
	case int64(r.Stop) > last || p.same == nil:
		p.same = map[string]bool{}
	case p.same[r.ID]: // the page before ended with it
		return last, nil
	}
	last, p.same[r.ID] = int64(r.Stop), true
	p.collection.addRecord(&r)
	p.at.Stop, p.at.Done = max(p.at.Stop, last), p.at.Done+1
	p.reportProgress(last)
	return last, p.collection.flushIfFull(ctx)
}

// reportProgress reports how far the walk is, in days.
func (p *pages) reportProgress(last int64) {
	const day = int64(24 * time.Hour / time.Microsecond)
	if p.begun == 0 {
		p.begun = last
	}
	end := cmp.Or(unixMicros(p.to), p.collection.now().UnixMicro())
	p.collection.setProgress((last-p.begun)/day, max(end-p.begun, day)/day, "days", record.Time(last).String())
}

// mostOpen is how many open records are remembered.
const mostOpen = 20_000

// collectOpen hands on the records that have no stop, and the ends of those that had none.
func (s *server) collectOpen(ctx context.Context, c *collection, at *place) error {
	open := map[string]bool{}
	take := func(raw []byte) error {
		r, ok, err := c.decodeAndAdd(ctx, raw, s.defaultKinds())
		if ok && r.Open() && len(open) < mostOpen {
			open[r.ID] = true
		}
		return err
	}
	if err := s.listOpen(ctx, c, take); err != nil {
		return err
	}
	if c.from.Window != nil {
		return nil
	}
	for _, id := range at.Open {
		if open[id] {
			continue
		}
		if err := s.findRecord(ctx, c, id, take); err != nil {
			return err
		}
	}
	at.Open = at.Open[:0]
	for id := range open {
		at.Open = append(at.Open, id)
	}
	slices.Sort(at.Open)
	return nil
}

// findRecord yields a record, which may be archived meanwhile.
func (s *server) findRecord(ctx context.Context, c *collection, id string, take func([]byte) error) error {
	query, found := url.Values{"record_id": {id}}, false
	err := s.fetchRecords(ctx, query, func(raw []byte) error { found = true; return take(raw) })
	if err != nil || found || s.path != ownPath {
		return err
	}
	return s.fetchWhole(ctx, c, query, 0, time.Time{}, take)
}

// errEnough ends an answer of which no more is needed.
var errEnough = errors.New("enough")

// listOpen yields the open records. AUDITOR has no filter for them, but puts them first in
// the reverse order.
func (s *server) listOpen(ctx context.Context, c *collection, take func([]byte) error) error {
	if s.path == ownPath {
		return s.fetchRecords(ctx, url.Values{"open": {"true"}}, take)
	}
	for limit := c.Page; ; limit *= 4 {
		n := 0
		err := s.fetchRecords(ctx, url.Values{"sort_by[desc]": {"stop_time"}, "limit": {strconv.Itoa(limit)}}, func(raw []byte) error {
			if n++; !withoutStop(raw) {
				return errEnough
			}
			if n <= limit/4 && limit > c.Page { // they came before
				return nil
			}
			return take(raw)
		})
		if errors.Is(err, errEnough) || err == nil && n < limit {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// withoutStop reports whether a record goes on.
func withoutStop(raw []byte) bool {
	var r struct {
		Stop *string `json:"stop_time"`
	}
	return json.Unmarshal(raw, &r) == nil && r.Stop == nil
}

// countWindow implements input, in one answer in another order. That of a bursar is still one of
// time, so that it reads one archive behind the other.
func (s *server) countWindow(ctx context.Context, w sdk.Window) (n int64, err error) {
	if err := s.detectServer(ctx); err != nil {
		return 0, err
	}
	query := stopQuery(max(unixMicros(w.From), 0), w.To)
	if query.Set("sort_by[desc]", "record_id"); s.path == ownPath {
		query.Set("sort_by[desc]", "stop_time")
		query.Set(archivedField, "true")
	}
	err = s.fetchRecords(ctx, query, func([]byte) error { n++; return nil })
	if err == nil {
		err = s.client.Health(ctx)
	}
	return n, err
}
