package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/archived"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const (
	// archiveReaders is how many answers read archives at a time on one node.
	archiveReaders = 2
	// archiveSilence is how long a plugin may read without giving a row.
	archiveSilence = 10 * time.Minute
	// archiveType is the type of the actions that write archives, and archiveRead their
	// argument, and the name of the effects, that give the records to the daemon.
	archiveType, archiveRead = "archive", "read"
)

// archiveReader reads the files of archives by the plugins of the actions that wrote them, on
// any node. It implements api.ArchiveReader.
type archiveReader struct {
	actors *actors
	opened bool
	places []*archivePlace
	reads  map[string]archiveRows // by the name of the archive
}

// archiveRows is the effect that gives the rows of an archive.
type archiveRows struct {
	place  *archivePlace
	effect sdk.Effect
}

// readArchives returns what reads archives for one answer.
func (s *actors) readArchives(context.Context) (api.ArchiveReader, error) {
	select {
	case s.readers <- struct{}{}:
		return &archiveReader{actors: s, reads: map[string]archiveRows{}}, nil
	default:
		return nil, fmt.Errorf("%w: %d other answers read archives on this node", store.ErrNoRoom, archiveReaders)
	}
}

// Close ends the plugins.
func (r *archiveReader) Close() (err error) {
	for _, p := range r.places {
		err = errors.Join(err, p.session.Close())
	}
	<-r.actors.readers
	return err
}

// Check implements store.ArchiveFiles.
func (r *archiveReader) Check(ctx context.Context, archives []string) error {
	var errs []error
	if !r.opened {
		r.opened = true
		errs = append(errs, r.openPlugins(ctx))
	}
	for _, p := range r.places {
		plan, err := p.session.Plan(ctx, sdk.PlanStart{Now: time.Now(), Arguments: map[string]string{archiveRead: v1.JoinList(archives...)}})
		if err != nil {
			errs = append(errs, fmt.Errorf("action %s: %w", p.name, err))
			continue
		}
		for _, e := range plan.Effects {
			name, _ := strings.CutPrefix(e.Name, archiveRead+" ")
			r.reads[name] = archiveRows{p, e}
		}
	}
	at := slices.IndexFunc(archives, func(name string) bool { return r.reads[name].place == nil })
	switch {
	case at < 0:
		return nil
	case len(errs) == 0:
		return fmt.Errorf("no action reads archive %s; bursar archive list shows its location", archives[at])
	}
	return errors.Join(errs...)
}

// openPlugins starts the plugin of each action that writes archives.
func (r *archiveReader) openPlugins(ctx context.Context) error {
	var errs []error
	for _, set := range r.actors.actionSettings() {
		if set.Name.Type != archiveType {
			continue
		}
		if set.Lacks != "" {
			errs = append(errs, errors.New(set.Lacks))
			continue
		}
		p := &archivePlace{name: set.Name}
		var err error
		if p.session, err = r.actors.openSession(ctx, &set, p); err != nil {
			errs = append(errs, fmt.Errorf("action %s: %w", set.Name, err))
			continue
		}
		r.places = append(r.places, p)
	}
	return errors.Join(errs...)
}

// Rows implements store.ArchiveFiles.
func (r *archiveReader) Rows(ctx context.Context, archive string, yield func(row []byte) error) error {
	if r.reads[archive].place == nil {
		if err := r.Check(ctx, []string{archive}); err != nil {
			return err
		}
	}
	rows := r.reads[archive]
	return rows.place.readRows(ctx, archive, rows.effect, yield)
}

// archivePlace is an action that writes archives, and takes the rows that its plugin shows.
type archivePlace struct {
	name    action.Name
	session *action.Session

	path   string                 // to which the rows are sent; "": no answer waits
	yield  func(row []byte) error // takes them
	silent *time.Timer
	err    error // of yield
}

func (p *archivePlace) readRows(ctx context.Context, archive string, effect sdk.Effect, yield func(row []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.silent = time.AfterFunc(archiveSilence, func() {
		p.session.Hang(&host.Stall{Call: "Execute", Silent: archiveSilence})
		cancel()
	})
	defer p.silent.Stop()
	p.path, p.yield, p.err = "/v1/archives/"+archive+":show", yield, nil
	result, err := p.session.Execute(ctx, sdk.Attempt{Effect: effect, Number: 1})
	p.path = ""
	switch {
	case p.err != nil:
		return p.err
	case err != nil:
		return err
	case result.Outcome != sdk.Done:
		return errors.New(result.Message)
	}
	return nil
}

// ServeHTTP implements http.Handler: it takes rows that the plugin shows, and refuses all
// else.
func (p *archivePlace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != p.path {
		http.NotFound(w, r)
		return
	}
	p.silent.Reset(archiveSilence)
	_, err := archived.ReadStream(r.Body, func(_ archived.Row, bytes []byte) error { return p.yield(bytes) })
	if p.err = err; err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(archived.Restored{}) // an error is the plugin's too
}
