package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/recordfile"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// execution is an attempt at a step.
type execution struct {
	*config

	attempt sdk.Attempt
	name    name
	world   *sdk.World
	data    *sdk.Data
	store   []archived.Archive
	there   editions
}

// refused is an error after which trying again is of no use: the next run begins anew.
type refused struct{ error }

func newRefusal(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

func isFinal(err error) bool {
	_, ok := errors.AsType[refused](err)
	return ok
}

// doStep does a step and says what was done.
func (e *execution) doStep(ctx context.Context, what string) (said string, err error) {
	if e.store, err = listArchives(ctx, e.data); err != nil {
		return "", err
	}
	files, err := e.files.List(ctx, e.name.month.folderName())
	if err != nil {
		return "", err
	}
	e.there = editionsOf(files)
	switch what {
	case stepWrite:
		return e.writeEdition(ctx)
	case stepTidy:
		return e.removeOldEditions(ctx)
	case stepRemove:
		return e.removeRecords(ctx)
	case stepVerify:
		return e.verifyArchive(ctx)
	case stepRestore:
		return e.restoreRecords(ctx)
	case stepRead:
		return e.showRecords(ctx)
	}
	return "", newRefusal("unknown step %q; run the newer plugin", what)
}

// listArchives asks for the archives of the store.
func listArchives(ctx context.Context, data *sdk.Data) ([]archived.Archive, error) {
	var list struct {
		Archives []archived.Archive `json:"archives"`
	}
	body, err := data.Get(ctx, "/v1/archives", "application/json")
	if err != nil {
		return nil, err
	}
	err = json.NewDecoder(body).Decode(&list)
	return list.Archives, errors.Join(err, body.Close())
}

// writeEdition writes an edition of the archive, unless the last one has the same records.
func (e *execution) writeEdition(ctx context.Context) (string, error) {
	if a := findArchive(e.store, e.name); a != nil {
		return "", newRefusal("%s is in the store as an archive already (%s)", e.name, a.State)
	}
	if last, whole := e.there.latestWhole(e.name); whole {
		same, err := e.isUpToDate(ctx, last)
		if err != nil || same {
			return last.recordsFile() + " has these records already", err
		}
	}
	status, err := e.data.API().Status(ctx, &v1.Reading{})
	if err != nil {
		return "", err
	}
	made := edition{e.name, e.attempt.Fence}
	m := recordfile.Manifest{
		Format: recordfile.ManifestFormat, Archive: e.name.String(), Cluster: status.Cluster, Schema: e.schema,
		From: e.name.month.monthStart(), To: e.name.month.monthEnd(), Written: time.Now().UTC().Truncate(time.Second),
	}
	if err := e.writeRecords(ctx, made, &m); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = e.checkUnused(ctx, made.manifestFile())
	}
	if err == nil {
		err = filestore.WriteFile(ctx, e.files, made.manifestFile(), append(text, '\n'))
	}
	return fmt.Sprintf("%d records in %s, %d bytes", m.Records, made.recordsFile(), m.Files[0].Bytes), err
}

// checkUnused refuses a name that a file has. Every attempt has names of its own, so the file is
// not of this action.
func (e *execution) checkUnused(ctx context.Context, file string) error {
	f, err := e.files.Open(ctx, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(newRefusal("%s is in %s already, and is not of this action: move it away", file, e.files), f.Close())
}

// isUpToDate reports whether an edition is sound and has the records that the store has.
func (e *execution) isUpToDate(ctx context.Context, last edition) (bool, error) {
	m, _, err := e.verifyEdition(ctx, last)
	if isFinal(err) {
		return false, nil // a new edition takes the place of what is damaged
	}
	if err != nil {
		return false, err
	}
	seal, err := e.data.Rows(ctx, m.From, m.To, func(archived.Row, []byte) error { return nil })
	return err == nil && m.Schema == e.schema && m.Records == seal.Count && m.Digest == seal.Digest(), err
}

// writeRecords writes the file of an edition and lists it in the manifest. The file is read back
// before it counts.
func (e *execution) writeRecords(ctx context.Context, made edition, m *recordfile.Manifest) error {
	if err := e.checkUnused(ctx, made.recordsFile()); err != nil {
		return err
	}
	file := recordfile.Listed{Name: made.recordsFile()}
	write := func(out io.Writer) error {
		sum := sha256.New()
		counted := &counter{w: io.MultiWriter(out, sum)}
		w := recordfile.NewWriter(counted, e.schema, e.name.String())
		seal, err := e.data.Rows(ctx, m.From, m.To, func(r archived.Row, _ []byte) error { return w.Write(&r) })
		if err == nil && seal.Sum != w.Sum {
			err = fmt.Errorf("%d rows came with the digest %s, and %s was written", seal.Count, seal.Digest(), w.Digest())
		}
		if err == nil {
			err = w.Close()
		}
		m.UpTo, m.Content = seal.UpTo, w.Content()
		file.Bytes, file.SHA256 = counted.n, hex.EncodeToString(sum.Sum(nil))
		return err
	}
	err := e.files.Put(ctx, made.recordsFile(), write, func(f *filestore.File) error { return checkFile(m, &file, f) })
	m.Files = []recordfile.Listed{file}
	return err
}

// checkFile reads a file back and compares it with the manifest.
func checkFile(m *recordfile.Manifest, listed *recordfile.Listed, f *filestore.File) error {
	got, err := listed.Check(f, f.Size, m.Schema)
	if err != nil {
		return err
	}
	if differs := m.Differs(&got); differs != "" {
		return fmt.Errorf("%s has %s", listed.Name, differs)
	}
	return nil
}

// counter counts bytes.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// removeOldEditions removes editions below the last whole one, and those of a
// supplement that was restored when a later one of a lower number has its records. What the
// store names stays.
func (e *execution) removeOldEditions(ctx context.Context) (string, error) {
	last, whole := e.there.latestWhole(e.name)
	for lower := (name{e.name.month, 1}); lower.number < e.name.number; lower.number++ {
		if findArchive(e.store, lower) == nil {
			last, whole = e.there.latestWhole(lower)
			break
		}
	}
	if a := findArchive(e.store, e.name); !whole || a != nil {
		return "nothing to remove", nil
	}
	n := 0
	for _, old := range e.there[e.name] {
		for i := range old.files {
			if old.fence >= last.fence {
				continue
			}
			file := old.files[len(old.files)-1-i] // the file of records is behind the manifest
			if err := e.files.Remove(ctx, file); err != nil {
				return "", err
			}
			n++
		}
	}
	return fmt.Sprintf("%d files were removed", n), nil
}

// verifyEdition reads an edition whole and compares it with its manifest.
func (e *execution) verifyEdition(ctx context.Context, ed edition) (recordfile.Manifest, []byte, error) {
	text, err := filestore.ReadFile(ctx, e.files, ed.manifestFile(), manifestBytes)
	if err != nil {
		return recordfile.Manifest{}, nil, finalIfMissing(err)
	}
	m, err := recordfile.ReadManifest(text)
	if err == nil && m.Archive != e.name.String() {
		err = fmt.Errorf("it is that of %s", m.Archive)
	}
	if err != nil {
		return m, nil, newRefusal("%s: %w", ed.manifestFile(), err)
	}
	for i := range m.Files {
		f, err := e.files.Open(ctx, m.Files[i].Name)
		if err != nil {
			return m, nil, finalIfMissing(err)
		}
		if err := errors.Join(checkFile(&m, &m.Files[i], f), f.Close()); err != nil {
			return m, nil, refused{err}
		}
	}
	return m, text, nil
}

// finalIfMissing makes an error final if it says that a file is not there.
func finalIfMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return refused{err}
	}
	return err
}

// removeRecords reads the last edition once more, and has the store remove what is in it.
func (e *execution) removeRecords(ctx context.Context) (string, error) {
	var s *archived.Statement
	if a := findArchive(e.store, e.name); a != nil { // it was begun: the same statement goes on
		if !e.isOurs(a) {
			return "", newRefusal("%s is in %s, and this action writes to %s", e.name, a.Location, e.files)
		}
		s = &a.Statement
	} else {
		last, whole := e.there.latestWhole(e.name)
		if !whole {
			return "", newRefusal("%s was not written, so nothing is removed", e.name)
		}
		m, text, err := e.verifyEdition(ctx, last)
		if err != nil {
			return "", fmt.Errorf("nothing is removed: %w", err)
		}
		sum := sha256.Sum256(text)
		s = &archived.Statement{
			From: m.From, To: m.To, UpTo: m.UpTo, Count: m.Records, Digest: m.Digest, Sums: m.Sums,
			Location: e.files.String(), Manifest: last.manifestFile(), SHA256: hex.EncodeToString(sum[:]), Keep: e.Keep,
		}
	}
	done, err := e.world.Archive(ctx, e.name.String(), s)
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status < http.StatusInternalServerError {
		return "", newRefusal("nothing is removed: %s; the next run writes what changed", no.Detail)
	}
	return fmt.Sprintf("%d records are in %s alone", done.Removed, s.Location), err
}

// archivedManifest reads the edition that the store names, and compares it with what the store
// knows.
func (e *execution) archivedManifest(ctx context.Context) (m recordfile.Manifest, err error) {
	a := findArchive(e.store, e.name)
	if a == nil {
		return m, newRefusal("%s is not archived", e.name)
	}
	if !e.isOurs(a) {
		return m, newRefusal("%s is in %s, and this action reads %s", e.name, a.Location, e.files)
	}
	ed, manifest, ok := parseFile(a.Manifest)
	if !ok || !manifest {
		return m, newRefusal("%s: unknown name of a manifest %q", e.name, a.Manifest)
	}
	m, text, err := e.verifyEdition(ctx, ed)
	if err == nil {
		err = checkManifest(a, text)
	}
	if err != nil {
		return m, err
	}
	if content := (recordfile.Content{Records: a.Count, Digest: a.Digest, Sums: a.Sums}); !m.Equal(&content) {
		return m, newRefusal("%s has other sums than the store knows", a.Manifest)
	}
	return m, nil
}

// checkManifest refuses a manifest other than that which the store knows.
func checkManifest(a *archived.Archive, text []byte) error {
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != a.SHA256 {
		return newRefusal("%s has the sha256 %s, and the store knows %s", a.Manifest, got, a.SHA256)
	}
	return nil
}

// verifyArchive reads the files and compares them with the manifest, and with what the store knows.
func (e *execution) verifyArchive(ctx context.Context) (string, error) {
	var m recordfile.Manifest
	var err error
	last, whole := e.there.latestWhole(e.name)
	where := "the files and the manifest agree"
	switch {
	case findArchive(e.store, e.name) != nil:
		where = "the files, the manifest and the store agree"
		m, err = e.archivedManifest(ctx)
	case whole:
		m, _, err = e.verifyEdition(ctx, last)
	default:
		err = newRefusal("%s has no manifest in %s", e.name, e.files)
	}
	return fmt.Sprintf("%d records: %s", m.Records, where), err
}

// restoreRecords gives records back to the store, of files that agree with what it knows.
func (e *execution) restoreRecords(ctx context.Context) (string, error) {
	if findArchive(e.store, e.name) == nil && e.attempt.Number > 1 {
		return "it was restored before", nil
	}
	m, err := e.archivedManifest(ctx)
	if err != nil {
		return "", fmt.Errorf("nothing is restored: %w", err)
	}
	done, err := e.world.Restore(ctx, e.name.String(), e.archiveRows(ctx, &m))
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status < http.StatusInternalServerError {
		return "", newRefusal("%s", no.Detail)
	}
	said := fmt.Sprintf("%d records are restored", done.Restored)
	if done.Left > 0 {
		said += fmt.Sprintf(", %d changed since and stay as they are", done.Left)
	}
	return said, err
}

// showRecords gives the records of files that agree with what the store knows to the daemon.
func (e *execution) showRecords(ctx context.Context) (string, error) {
	m, err := e.archivedManifest(ctx)
	if err != nil {
		return "", err
	}
	err = e.world.Show(ctx, e.name.String(), e.archiveRows(ctx, &m))
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status < http.StatusInternalServerError {
		return "", newRefusal("no answer waits for the records: %s", no.Detail)
	}
	return fmt.Sprintf("%d records were read", m.Records), err
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

// archiveRows reads all rows of an archive.
func (e *execution) archiveRows(ctx context.Context, m *recordfile.Manifest) iter.Seq2[archived.Row, error] {
	read := func(listed *recordfile.Listed, yield func(archived.Row, error) bool) error {
		f, err := e.files.Open(ctx, listed.Name)
		if err != nil {
			return err
		}
		defer f.Close()
		in, err := recordfile.Open(f, f.Size)
		if err != nil {
			return err
		}
		return in.Rows(func(r *archived.Row) error {
			if !yield(*r, nil) {
				return errEnough
			}
			return nil
		})
	}
	return func(yield func(archived.Row, error) bool) {
		for i := range m.Files {
			if err := read(&m.Files[i], yield); err != nil {
				if !errors.Is(err, errEnough) {
					yield(archived.Row{}, err)
				}
				return
			}
		}
	}
}
