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

func refuse(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

func final(err error) bool {
	_, ok := errors.AsType[refused](err)
	return ok
}

// do does a step and says what was done.
func (e *execution) do(ctx context.Context, what string) (said string, err error) {
	if e.store, err = archives(ctx, e.data); err != nil {
		return "", err
	}
	files, err := e.files.List(ctx, e.name.month.folder())
	if err != nil {
		return "", err
	}
	e.there = editionsOf(files)
	switch what {
	case stepWrite:
		return e.write(ctx)
	case stepTidy:
		return e.tidy(ctx)
	case stepRemove:
		return e.remove(ctx)
	case stepVerify:
		return e.verify(ctx)
	case stepRestore:
		return e.restore(ctx)
	case stepRead:
		return e.read(ctx)
	}
	return "", refuse("unknown step %q; run the newer plugin", what)
}

// archives asks for those of the store.
func archives(ctx context.Context, data *sdk.Data) ([]archived.Archive, error) {
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

// write writes an edition of the archive, unless the last one has the same records.
func (e *execution) write(ctx context.Context) (string, error) {
	if a := find(e.store, e.name); a != nil {
		return "", refuse("%s is in the store as an archive already (%s)", e.name, a.State)
	}
	if last, whole := e.there.latest(e.name); whole {
		same, err := e.same(ctx, last)
		if err != nil || same {
			return last.records() + " has these records already", err
		}
	}
	status, err := e.data.API().Status(ctx, &v1.Reading{})
	if err != nil {
		return "", err
	}
	made := edition{e.name, e.attempt.Fence}
	m := recordfile.Manifest{
		Format: recordfile.ManifestFormat, Archive: e.name.String(), Cluster: status.Cluster, Schema: e.schema,
		From: e.name.month.begin(), To: e.name.month.end(), Written: time.Now().UTC().Truncate(time.Second),
	}
	if err := e.records(ctx, made, &m); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = e.fresh(ctx, made.manifest())
	}
	if err == nil {
		err = filestore.WriteFile(ctx, e.files, made.manifest(), append(text, '\n'))
	}
	return fmt.Sprintf("%d records in %s, %d bytes", m.Records, made.records(), m.Files[0].Bytes), err
}

// fresh refuses a name that a file has. Every attempt has names of its own, so the file is
// not of this action.
func (e *execution) fresh(ctx context.Context, file string) error {
	f, err := e.files.Open(ctx, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(refuse("%s is in %s already, and is not of this action: move it away", file, e.files), f.Close())
}

// same reports whether an edition is sound and has the records that the store has.
func (e *execution) same(ctx context.Context, last edition) (bool, error) {
	m, _, err := e.sound(ctx, last)
	if final(err) {
		return false, nil // a new edition takes the place of what is damaged
	}
	if err != nil {
		return false, err
	}
	seal, err := e.data.Rows(ctx, m.From, m.To, func(archived.Row, []byte) error { return nil })
	return err == nil && m.Schema == e.schema && m.Records == seal.Count && m.Digest == seal.Digest(), err
}

// records writes the file of an edition and lists it in the manifest. The file is read back
// before it counts.
func (e *execution) records(ctx context.Context, made edition, m *recordfile.Manifest) error {
	if err := e.fresh(ctx, made.records()); err != nil {
		return err
	}
	file := recordfile.Listed{Name: made.records()}
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
	err := e.files.Put(ctx, made.records(), write, func(f *filestore.File) error { return check(m, &file, f) })
	m.Files = []recordfile.Listed{file}
	return err
}

// check reads a file back.
func check(m *recordfile.Manifest, listed *recordfile.Listed, f *filestore.File) error {
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

// tidy removes editions below the last one that is whole, and those of a supplement that was
// restored when a later one of a lower number has its records. What the store names stays.
func (e *execution) tidy(ctx context.Context) (string, error) {
	last, whole := e.there.latest(e.name)
	for lower := (name{e.name.month, 1}); lower.number < e.name.number; lower.number++ {
		if find(e.store, lower) == nil {
			last, whole = e.there.latest(lower)
			break
		}
	}
	if a := find(e.store, e.name); !whole || a != nil {
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

// sound reads an edition whole and compares it with its manifest.
func (e *execution) sound(ctx context.Context, ed edition) (recordfile.Manifest, []byte, error) {
	text, err := filestore.ReadFile(ctx, e.files, ed.manifest(), manifestBytes)
	if err != nil {
		return recordfile.Manifest{}, nil, missing(err)
	}
	m, err := recordfile.ReadManifest(text)
	if err == nil && m.Archive != e.name.String() {
		err = fmt.Errorf("it is that of %s", m.Archive)
	}
	if err != nil {
		return m, nil, refuse("%s: %w", ed.manifest(), err)
	}
	for i := range m.Files {
		f, err := e.files.Open(ctx, m.Files[i].Name)
		if err != nil {
			return m, nil, missing(err)
		}
		if err := errors.Join(check(&m, &m.Files[i], f), f.Close()); err != nil {
			return m, nil, refused{err}
		}
	}
	return m, text, nil
}

// missing makes an error final if a file is not there.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return refused{err}
	}
	return err
}

// remove reads the last edition once more, and has the store remove what is in it.
func (e *execution) remove(ctx context.Context) (string, error) {
	var s *archived.Statement
	if a := find(e.store, e.name); a != nil { // it was begun: the same statement goes on
		if !e.ours(a) {
			return "", refuse("%s is in %s, and this action writes to %s", e.name, a.Location, e.files)
		}
		s = &a.Statement
	} else {
		last, whole := e.there.latest(e.name)
		if !whole {
			return "", refuse("%s was not written, so nothing is removed", e.name)
		}
		m, text, err := e.sound(ctx, last)
		if err != nil {
			return "", fmt.Errorf("nothing is removed: %w", err)
		}
		sum := sha256.Sum256(text)
		s = &archived.Statement{
			From: m.From, To: m.To, UpTo: m.UpTo, Count: m.Records, Digest: m.Digest, Sums: m.Sums,
			Location: e.files.String(), Manifest: last.manifest(), SHA256: hex.EncodeToString(sum[:]), Keep: e.Keep,
		}
	}
	done, err := e.world.Archive(ctx, e.name.String(), s)
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status < http.StatusInternalServerError {
		return "", refuse("nothing is removed: %s; the next run writes what changed", no.Detail)
	}
	return fmt.Sprintf("%d records are in %s alone", done.Removed, s.Location), err
}

// stated reads the edition that the store names, and compares it with what the store knows.
func (e *execution) stated(ctx context.Context) (m recordfile.Manifest, err error) {
	a := find(e.store, e.name)
	if a == nil {
		return m, refuse("%s is not archived", e.name)
	}
	if !e.ours(a) {
		return m, refuse("%s is in %s, and this action reads %s", e.name, a.Location, e.files)
	}
	ed, manifest, ok := parseFile(a.Manifest)
	if !ok || !manifest {
		return m, refuse("%s: unknown name of a manifest %q", e.name, a.Manifest)
	}
	m, text, err := e.sound(ctx, ed)
	if err == nil {
		err = known(a, text)
	}
	if err != nil {
		return m, err
	}
	if content := (recordfile.Content{Records: a.Count, Digest: a.Digest, Sums: a.Sums}); !m.Equal(&content) {
		return m, refuse("%s has other sums than the store knows", a.Manifest)
	}
	return m, nil
}

// known refuses a manifest that is not the one that the store knows.
func known(a *archived.Archive, text []byte) error {
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != a.SHA256 {
		return refuse("%s has the sha256 %s, and the store knows %s", a.Manifest, got, a.SHA256)
	}
	return nil
}

// verify reads the files and compares them with the manifest, and with what the store knows.
func (e *execution) verify(ctx context.Context) (string, error) {
	var m recordfile.Manifest
	var err error
	last, whole := e.there.latest(e.name)
	where := "the files and the manifest agree"
	switch {
	case find(e.store, e.name) != nil:
		where = "the files, the manifest and the store agree"
		m, err = e.stated(ctx)
	case whole:
		m, _, err = e.sound(ctx, last)
	default:
		err = refuse("%s has no manifest in %s", e.name, e.files)
	}
	return fmt.Sprintf("%d records: %s", m.Records, where), err
}

// restore gives records back to the store, of files that agree with what it knows.
func (e *execution) restore(ctx context.Context) (string, error) {
	if find(e.store, e.name) == nil && e.attempt.Number > 1 {
		return "it was restored before", nil
	}
	m, err := e.stated(ctx)
	if err != nil {
		return "", fmt.Errorf("nothing is restored: %w", err)
	}
	done, err := e.world.Restore(ctx, e.name.String(), e.rows(ctx, &m))
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status < http.StatusInternalServerError {
		return "", refuse("%s", no.Detail)
	}
	said := fmt.Sprintf("%d records are restored", done.Restored)
	if done.Left > 0 {
		said += fmt.Sprintf(", %d changed since and stay as they are", done.Left)
	}
	return said, err
}

// read gives the records of files that agree with what the store knows to the daemon.
func (e *execution) read(ctx context.Context) (string, error) {
	m, err := e.stated(ctx)
	if err != nil {
		return "", err
	}
	err = e.world.Show(ctx, e.name.String(), e.rows(ctx, &m))
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status < http.StatusInternalServerError {
		return "", refuse("no answer waits for the records: %s", no.Detail)
	}
	return fmt.Sprintf("%d records were read", m.Records), err
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

// rows reads all rows of an archive.
func (e *execution) rows(ctx context.Context, m *recordfile.Manifest) iter.Seq2[archived.Row, error] {
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
