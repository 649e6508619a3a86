package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

type siteSettings struct {
	Directory hcl.Absolute      `hcl:"directory,optional" unset:"this or bucket" doc:"a folder that is there and that the aggregator can write to; on all aggregators the same one, such as a mount"`
	Bucket    *filestore.Bucket `hcl:"bucket,block" unset:"this or directory" doc:"a bucket of an S3-compatible server"`
	Title     string            `hcl:"title,optional" default:"Reports" doc:"of the index and of the feed"`
	URL       string            `hcl:"url,optional" unset:"relative links" doc:"the address at which a web server shows the folder, for the links of the feed"`

	files filestore.Store
}

// publication is the payload of a page: what is put into a folder of the site.
type publication struct {
	Version int               `json:"version"`
	Folder  string            `json:"folder"`
	Title   string            `json:"title"`
	Updated time.Time         `json:"updated"`
	Files   map[string]string `json:"files"`          // texts by name; the page is indexPage
	Data    map[string][]byte `json:"data,omitempty"` // files that are not text, by name
}

const (
	publicationVersion = 1

	indexPage = "index.html"
	feedPage  = "feed.xml"
	// entryFile says what a folder of the site has. It is written last: a folder without it
	// is in no index.
	entryFile = "entry.json"
)

// entry is a report of the site, in the index and in the feed.
type entry struct {
	Folder  string    `json:"folder"`
	Title   string    `json:"title"`
	Updated time.Time `json:"updated"`
	Files   []string  `json:"files"`  // beside the page
	Digest  string    `json:"digest"` // of the payload
}

// planPage plans the page about a subject, unless the page planned last shows the same.
func (p *planner) planPage(s *subject, made *content) error {
	folder := strings.TrimSuffix(p.Report+"-"+p.key+"-"+fileNamePart(s.id), "-")
	if s.id != "" {
		folder += fmt.Sprintf("-%x", idDigest(p.subjectKey(s))[:3]) // what is not safe may be all that tells two apart
	}
	id := fmt.Sprintf("page of %q %q %q %q", p.label, p.Site.files, p.key, p.subjectKey(s))
	shows, err := made.comparableContent()
	if err != nil || p.state.hasPage(id, shows) {
		return err
	}
	out := publication{
		Version: publicationVersion, Folder: folder, Title: made.subject, Updated: p.start.Now,
		Files: map[string]string{indexPage: made.html}, Data: map[string][]byte{},
	}
	for _, f := range made.files {
		if strings.HasPrefix(f.Kind, "text/") {
			out.Files[f.Name] = string(f.Data)
		} else {
			out.Data[f.Name] = f.Data
		}
	}
	payload, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if p.addEffect(sdk.Effect{
		Name: "page " + folder, Summary: made.subject, Payload: payload,
		Show: fmt.Sprintf("Folder: %s\nTitle: %s\n\n%s", folder, made.subject, made.text),
	}, "page "+folder) {
		p.state.storePage(id, shows)
	}
	return nil
}

// comparableContent is all that the page and the files show, but for when they were made: the
// attached HTML says that too, and shows what the document has.
func (c *content) comparableContent() ([]byte, error) {
	d := c.document
	d.Made = v1.Time{}
	return json.Marshal([]any{c.subject, c.html, d})
}

func readPublication(payload []byte) (p publication, err error) {
	if err := json.Unmarshal(payload, &p); err != nil {
		return p, fmt.Errorf("the effect is not a page: %w", err)
	}
	if p.Version != publicationVersion || path.Base(p.Folder) != p.Folder || strings.HasPrefix(p.Folder, ".") {
		return p, fmt.Errorf("the effect has format %d and the folder %q; run the newer plugin", p.Version, p.Folder)
	}
	return p, nil
}

// publishPage puts a page into the site. Each file appears whole, the page before it is in the
// index. A page that was planned later stays as it is.
func (s *siteSettings) publishPage(ctx context.Context, payload []byte, templates *templates) sdk.Result {
	p, err := readPublication(payload)
	if err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	switch err := s.putPage(ctx, payload, &p); {
	case errors.Is(err, errNewer):
		return s.outdatedResult(&p)
	case err != nil:
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	}
	if err := s.writeIndex(ctx, templates); err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	}
	return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprintf("published in %s/%s", s.files, p.Folder), Reference: p.Folder}
}

// outdatedResult is the result of a page where a newer page is in the site.
func (s *siteSettings) outdatedResult(p *publication) sdk.Result {
	return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprintf("a newer page is in %s/%s", s.files, p.Folder), Reference: p.Folder}
}

func (s *siteSettings) putPage(ctx context.Context, payload []byte, p *publication) error {
	e := entry{Folder: p.Folder, Title: p.Title, Updated: p.Updated, Digest: payloadDigest(payload)}
	if err := s.checkNewest(ctx, p); err != nil {
		return err
	}
	files := map[string][]byte{}
	maps.Copy(files, p.Data)
	for name, text := range p.Files {
		files[name] = []byte(text)
	}
	for name, data := range files {
		if path.Base(name) != name {
			return fmt.Errorf("%q is not a name of a file", name)
		}
		if err := s.writeFile(ctx, p, name, data); err != nil {
			return err
		}
		if name != indexPage {
			e.Files = append(e.Files, name)
		}
	}
	slices.Sort(e.Files)
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := s.writeFile(ctx, p, entryFile, text); err != nil {
		return err
	}
	return s.rewriteReplaced(ctx, p, files)
}

// rewriteReplaced writes again what an older page put in place of files of a page that is in
// its folder now: from then on [siteSettings.writeFile] keeps older ones out.
func (s *siteSettings) rewriteReplaced(ctx context.Context, p *publication, files map[string][]byte) error {
	for name, data := range files {
		got, err := filestore.ReadFile(ctx, s.files, path.Join(p.Folder, name), int64(len(data)))
		if err == nil && bytes.Equal(got, data) {
			continue
		}
		if err := s.writeFile(ctx, p, name, data); err != nil {
			return err
		}
	}
	return nil
}

// errNewer is of a page whose folder has a newer one.
var errNewer = errors.New("a newer page is there")

// checkNewest returns [errNewer] when the folder of a page has a newer one, and an error when
// it may.
func (s *siteSettings) checkNewest(ctx context.Context, p *publication) error {
	there, err := s.readEntry(ctx, path.Join(p.Folder, entryFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoEntry):
		return nil
	case err == nil && there.Updated.After(p.Updated):
		return errNewer
	}
	return err
}

// writeFile writes a file of a page, unless a newer page came meanwhile: a leader that was stopped
// between two files must not put those of its page among those of the next leader's.
func (s *siteSettings) writeFile(ctx context.Context, p *publication, name string, data []byte) error {
	return s.files.Put(ctx, path.Join(p.Folder, name), func(w io.Writer) error {
		if _, err := w.Write(data); err != nil {
			return err
		}
		return s.checkNewest(ctx, p)
	}, nil)
}

func payloadDigest(payload []byte) string { return fmt.Sprintf("%x", sha256.Sum256(payload)) }

// probePage looks whether a page is in the site.
func (s *siteSettings) probePage(ctx context.Context, payload []byte) sdk.Result {
	p, err := readPublication(payload)
	if err != nil {
		return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
	}
	e, err := s.readEntry(ctx, path.Join(p.Folder, entryFile))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
	case err == nil && e.Updated.After(p.Updated):
		return s.outdatedResult(&p)
	case err != nil || e.Digest != payloadDigest(payload):
		return sdk.Result{Outcome: sdk.Retry, Message: "it is not in " + s.files.String()}
	}
	return sdk.Result{Outcome: sdk.Done, Message: "it is in " + s.files.String(), Reference: p.Folder}
}

// entryBytes is how long what is said of a page may be.
const entryBytes = 1 << 20

// errNoEntry is wrapped where a file has another content than an entry.
var errNoEntry = errors.New("invalid entry of a site")

func (s *siteSettings) readEntry(ctx context.Context, name string) (e entry, err error) {
	text, err := filestore.ReadFile(ctx, s.files, name, entryBytes)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("%s in %s: %w: %w", name, s.files, errNoEntry, err)
	}
	return e, nil
}

// listEntries returns the entries of the pages that are whole, the newest first.
func (s *siteSettings) listEntries(ctx context.Context) (list []entry, err error) {
	names, err := s.files.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if path.Base(name) != entryFile || strings.Count(name, "/") != 1 {
			continue
		}
		e, err := s.readEntry(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(a.Folder, b.Folder))
	})
	return list, nil
}

// mostIndexed is how often the index and the feed are written in one attempt.
const mostIndexed = 5

// writeIndex writes the index and the feed, and writes them again when a page came meanwhile:
// another leader may have written them in between, with what this one had not seen.
func (s *siteSettings) writeIndex(ctx context.Context, templates *templates) error {
	list, err := s.listEntries(ctx)
	if err != nil {
		return err
	}
	for range mostIndexed {
		page, err := templates.renderIndex(&index{s.Title, list})
		if err != nil {
			return err
		}
		feed, err := s.encodeFeed(list)
		if err != nil {
			return err
		}
		if err := errors.Join(filestore.WriteFile(ctx, s.files, indexPage, page), filestore.WriteFile(ctx, s.files, feedPage, feed)); err != nil {
			return err
		}
		now, err := s.listEntries(ctx)
		if err != nil || slices.EqualFunc(now, list, func(a, b entry) bool { return a.Folder == b.Folder && a.Digest == b.Digest }) {
			return err
		}
		list = now
	}
	return errors.New("pages come faster than the index is written")
}

// index is what the template of the index is given.
type index struct {
	Title   string
	Reports []entry
}

func (t *templates) renderIndex(i *index) ([]byte, error) {
	var b bytes.Buffer
	err := t.pages[indexPage].Execute(&b, i)
	return b.Bytes(), err
}

// atom is a feed, as RFC 4287 has it.
type atom struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Title   string      `xml:"title"`
	ID      string      `xml:"id"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	Title   string     `xml:"title"`
	ID      string     `xml:"id"`
	Updated string     `xml:"updated"`
	Links   []atomLink `xml:"link"`
}

// mostInFeed are the newest.
const mostInFeed = 100

func (s *siteSettings) encodeFeed(list []entry) ([]byte, error) {
	address := func(elem ...string) string {
		out, err := url.JoinPath(cmp.Or(s.URL, "./"), elem...)
		if err != nil {
			return "" // it was read when it was checked
		}
		return out
	}
	name := func(of string) string { return fmt.Sprintf("urn:bursar:report:%x", idDigest(s.URL+" "+s.Title+" "+of)) }
	f := atom{
		Title: s.Title, ID: name(""), Updated: time.Unix(0, 0).UTC().Format(time.RFC3339), Author: "bursar",
		Links: []atomLink{{"self", address(feedPage)}, {"alternate", address(indexPage)}},
	}
	for i, e := range list[:min(len(list), mostInFeed)] {
		at := e.Updated.UTC().Format(time.RFC3339)
		if i == 0 {
			f.Updated = at
		}
		f.Entries = append(f.Entries, atomEntry{e.Title, name(e.Folder), at, []atomLink{{"alternate", address(e.Folder, "/")}}})
	}
	text, err := xml.MarshalIndent(f, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}
