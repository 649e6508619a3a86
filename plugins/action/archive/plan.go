package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/recordfile"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// planner makes the plan of a run.
type planner struct {
	*config

	start   sdk.PlanStart
	data    *sdk.Data
	cluster string
	store   []archived.Archive // what was removed, or is being removed or restored
	files   editions           // what is there

	out sdk.Plan
}

// manifestBytes is how long a manifest may be.
const manifestBytes = 1 << 20

func (p *planner) planArchives(ctx context.Context) (sdk.Plan, error) {
	if err := p.loadState(ctx); err != nil {
		return p.out, err
	}
	for argument, value := range p.start.Arguments {
		if argument == stepRead && len(p.start.Arguments) == 1 {
			return p.out, p.planRead(ctx, v1.SplitList(value))
		}
		if len(p.start.Arguments) > 1 || argument != stepVerify && argument != stepRestore {
			return p.out, fmt.Errorf("unknown argument %s=%s: use verify=all, verify=2024-03 or restore=2024-03", argument, value)
		}
		return p.out, p.planOrdered(argument, value)
	}
	p.resumeInterrupted()
	for m, err := range p.archivableMonths(ctx) {
		if err == nil {
			err = p.planArchive(ctx, m)
		}
		if err != nil {
			return p.out, err
		}
	}
	return p.out, nil
}

// loadState asks what the store has removed, and which files there are.
func (p *planner) loadState(ctx context.Context) error {
	status, err := p.data.API().Status(ctx, &v1.Reading{})
	if err != nil {
		return err
	}
	p.cluster = status.Cluster
	if p.store, err = listArchives(ctx, p.data); err != nil {
		return err
	}
	if _, reads := p.start.Arguments[stepRead]; reads {
		return nil
	}
	files, err := p.config.files.List(ctx, "")
	p.files = editionsOf(files)
	return err
}

func (p *planner) addNote(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// addStep plans a step.
func (p *planner) addStep(do string, n name, format string, args ...any) {
	p.out.Effects = append(p.out.Effects, sdk.Effect{
		Name: do + " " + n.String(), Summary: fmt.Sprintf(format, args...), Payload: step{Do: do, Archive: n.String()}.encodeStep(),
	})
}

// storedArchive is the archive of that name in the store; nil: there is none.
func (p *planner) storedArchive(n name) *archived.Archive { return findArchive(p.store, n) }

func findArchive(list []archived.Archive, n name) *archived.Archive {
	i := slices.IndexFunc(list, func(a archived.Archive) bool { return a.Name == n.String() })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// isOurs reports whether an archive of the store is where the action writes.
func (c *config) isOurs(a *archived.Archive) bool { return a.Location == c.files.String() }

// resumeInterrupted plans what was interrupted.
func (p *planner) resumeInterrupted() {
	for i := range p.store {
		a := &p.store[i]
		n, err := parseName(a.Name)
		if err != nil || !p.isOurs(a) {
			continue
		}
		switch a.State {
		case "checking", "removing":
			p.addStep(stepRemove, n, "go on to remove %d records", a.Count-a.Removed)
		case "restoring":
			p.out.Partial = true
			p.addNote("%s is being restored: bursar archive restore %s goes on", n, n)
		}
	}
}

// planOrdered plans what a person ordered.
func (p *planner) planOrdered(do, value string) error {
	known := map[name]bool{}
	for i := range p.store {
		if n, err := parseName(p.store[i].Name); err == nil && p.isOurs(&p.store[i]) {
			known[n] = true
		}
	}
	if do == stepVerify {
		for n := range p.files {
			if _, whole := p.files.latestWhole(n); whole {
				known[n] = true
			}
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(known), compareNames) {
		switch {
		case value != "all" && value != n.String() && value != n.month.String():
		case do == stepVerify:
			p.addStep(do, n, "read the files and compare them with the manifest and the store")
		default:
			p.addStep(do, n, "give %d records back to the store", p.storedArchive(n).Count)
		}
	}
	if len(p.out.Effects) == 0 {
		return fmt.Errorf("%s %s: archive not found in %s; bursar archive list shows them", do, value, p.config.files)
	}
	return nil
}

// planRead plans to give those of the archives that are here to the daemon. It looks whether
// their files are there, and does not read them.
func (p *planner) planRead(ctx context.Context, archives []string) error {
	for _, text := range archives {
		n, err := parseName(text)
		if err != nil {
			return err
		}
		a := p.storedArchive(n)
		if a == nil || !p.isOurs(a) {
			continue
		}
		if err := p.checkComplete(ctx, a); err != nil {
			return fmt.Errorf("archive %s in %s: %w", n, p.config.files, err)
		}
		p.addStep(stepRead, n, "read %d records", a.Count)
	}
	return nil
}

// checkComplete returns an error when the manifest that the store knows, or a file that it
// lists, is missing or another one.
func (p *planner) checkComplete(ctx context.Context, a *archived.Archive) error {
	text, err := filestore.ReadFile(ctx, p.config.files, a.Manifest, manifestBytes)
	if err == nil {
		err = checkManifest(a, text)
	}
	if err != nil {
		return err
	}
	m, err := recordfile.ReadManifest(text)
	for i := range m.Files {
		var f *filestore.File
		if f, err = p.config.files.Open(ctx, m.Files[i].Name); err != nil {
			return err
		}
		if f.Size != m.Files[i].Bytes {
			err = fmt.Errorf("%s has %d bytes, want %d", f.Name, f.Size, m.Files[i].Bytes)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return err
}

// errFirst ends the reading of rows at the first one.
var errFirst = errors.New("a row")

// archivableMonths yields the months that have rows with details, and have ended long enough ago.
func (p *planner) archivableMonths(ctx context.Context) iter.Seq2[month, error] {
	return func(yield func(month, error) bool) {
		last := monthOf(p.start.Now.Add(-p.WriteAfter)) // it has not ended
		for from := p.first; from < last; {
			var at month
			_, err := p.data.Rows(ctx, from.monthStart(), last.monthStart(), func(r archived.Row, _ []byte) error {
				at = monthOf(r.ShownStop().Std())
				return errFirst
			})
			if err == nil {
				return // there is none
			}
			if errors.Is(err, errFirst) {
				err = nil
			}
			if !yield(at, err) || err != nil {
				return
			}
			from = at + 1
		}
	}
}

// planArchive plans the next archive of a month.
func (p *planner) planArchive(ctx context.Context, m month) error {
	n := name{m, 1}
	for a := p.storedArchive(n); a != nil; a = p.storedArchive(n) {
		if a.State != "archived" {
			return nil // rows that it is about to have, or to give back, belong to no supplement
		}
		n.number++
	}
	due := p.RemoveMonths > 0 && !(m + month(p.RemoveMonths) + 1).monthStart().After(p.start.Now)
	there, whole := p.files.latestWhole(n)
	fresh := false
	if whole {
		manifest, err := readManifest(ctx, p.config.files, there)
		switch {
		case err != nil:
			p.addNote("%s: %v; it is written anew", n, err)
		case manifest.Cluster != p.cluster:
			return fmt.Errorf("%s in %s is of the cluster %s, and this one is %s: use a folder or prefix of its own", n, p.config.files, manifest.Cluster, p.cluster)
		default:
			if fresh, err = p.isUnchanged(ctx, m, manifest.UpTo); err != nil {
				return err
			}
		}
	}
	if !fresh || due {
		p.addStep(stepWrite, n, "write the records that stopped in %s to %s", m, m.folderName())
	}
	if len(p.files[n]) > 1 || len(p.files[n]) == 1 && !fresh {
		p.addStep(stepTidy, n, "remove files that a later one took the place of")
	}
	for _, restored := range slices.SortedFunc(maps.Keys(p.files), compareNames) {
		if restored.month != m || restored.number <= n.number || p.storedArchive(restored) != nil {
			continue
		}
		p.addStep(stepTidy, restored, "remove files of records that were restored and are in %s now", n)
	}
	if due {
		p.addStep(stepRemove, n, "verify the files and remove the records that stopped in %s from the store", m)
	}
	return nil
}

// isUnchanged reports whether no record of a month changed behind a change of the feed. That one
// was deleted it does not see; the removal does.
func (p *planner) isUnchanged(ctx context.Context, m month, upTo uint64) (bool, error) {
	from, to := v1.Time{Time: m.monthStart()}, v1.Time{Time: m.monthEnd()}
	page, err := p.data.API().ListRecords(ctx, &v1.ListRecordsQuery{StopTime: v1.TimeTest{Gte: from, Lt: to}, After: upTo, Limit: 1})
	return err == nil && len(page.Records) == 0, err
}

func readManifest(ctx context.Context, s filestore.Store, e edition) (m recordfile.Manifest, err error) {
	text, err := filestore.ReadFile(ctx, s, e.manifestFile(), manifestBytes)
	if err != nil {
		return m, err
	}
	if m, err = recordfile.ReadManifest(text); err != nil {
		return m, fmt.Errorf("%s: %w", e.manifestFile(), err)
	}
	return m, nil
}

func compareNames(a, b name) int { return strings.Compare(a.sortKey(), b.sortKey()) }

func (n name) sortKey() string { return fmt.Sprintf("%s-%06d", n.month, n.number) }
