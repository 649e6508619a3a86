package main

import (
	"archive/zip"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/filestore/s3test"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func siteAction(t *testing.T, dir, more string) *action {
	t.Helper()
	a, err := configureAll(t, fmt.Sprintf("report = \"usage\"\nattach = [\"csv\", \"html\"]\n%s\nsite {\n directory = %q\n url = \"https://www.example.org/reports\"\n}\n", more, dir))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// bucketAction is an action whose site is in a bucket.
func bucketAction(t *testing.T, endpoint, prefix string) *action {
	t.Helper()
	a, err := configureAll(t, fmt.Sprintf("report = \"usage\"\nattach = [\"csv\", \"html\"]\neach = \"pi\"\nsite {\n url = \"https://www.example.org/reports\"\n"+
		"bucket {\n endpoint = %q\n bucket = \"archive\"\n prefix = %q\n access_key = \"k\"\n secret_key = %q\n }\n}\n", endpoint, prefix, "s"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (c *cluster) does(a *action, p sdk.Plan) {
	c.t.Helper()
	for _, e := range p.Effects {
		if r := a.Execute(c.t.Context(), sdk.Attempt{Effect: e}, nil); r.Outcome != sdk.Done {
			c.t.Fatalf("%s: %+v", e.Name, r)
		}
	}
}

func contentOf(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSite_EachSubject_HasAPageInIndexAndFeed(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	a := siteAction(t, dir, "each = \"pi\"")
	first := c.plans(a, nil, nil)
	c.does(a, first)
	second := c.plans(a, first.State, map[string]string{"period": "this-month"})
	c.does(a, second)
	if len(first.Effects) != 3 || len(second.Effects) != 3 || first.Partial {
		t.Fatalf("%+v\n%+v", first, second)
	}
	again := c.plans(a, second.State, nil)
	if len(again.Effects) != 0 {
		t.Errorf("%+v", again.Effects)
	}
	list, err := filepath.Glob(dir + "/usage-2026-10-01..2026-11-01-bell-*")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if page := contentOf(t, list[0], "index.html"); !strings.Contains(page, "A. Bell (bell)") {
		t.Error(page)
	}
	if csv := contentOf(t, list[0], "usage-bell-2026-10-01..2026-11-01.csv"); csv != "user_id,Cores\nann & bob,3.333333333\n" {
		t.Error(csv)
	}
	index := contentOf(t, dir, "index.html")
	if strings.Count(index, "<li>") != 6 || !strings.Contains(index, `href="`+filepath.Base(list[0])+`/usage-bell-2026-10-01..2026-11-01.html"`) {
		t.Error(index)
	}
	var feed atom
	if err := xml.Unmarshal([]byte(contentOf(t, dir, "feed.xml")), &feed); err != nil {
		t.Fatal(err)
	}
	var ids, links []string
	for _, e := range feed.Entries {
		ids, links = append(ids, e.ID), append(links, e.Links[0].Href)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 6 || feed.ID == "" || feed.Updated != "2026-11-03T07:00:00Z" || !slices.Contains(links, "https://www.example.org/reports/"+filepath.Base(list[0])+"/") {
		t.Errorf("%+v", feed)
	}
}

func TestSite_WhatChanges_IsPublishedAgain(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	a := siteAction(t, dir, "each = \"pi\"")
	old := c.plans(a, nil, nil)
	c.does(a, old)
	state, later := old.State, now()
	shown := func(hours int) { // and nothing else has changed
		t.Helper()
		c.hours["bell"], later = hours, later.Add(10*time.Minute)
		p, err := a.Plan(t.Context(), sdk.PlanStart{Now: later, State: state}, sdk.NewData(c))
		if err != nil || len(p.Effects) != 1 || len(p.State) != len(old.State) {
			t.Fatalf("%d effects, %d bytes, %v", len(p.Effects), len(p.State), err)
		}
		c.does(a, p)
		state = p.State
		if again := c.plans(a, state, nil); len(again.Effects) != 0 {
			t.Errorf("the same page is planned again: %+v", again.Effects)
		}
	}
	shown(2000)
	shown(10) // as at first
	shown(3 * 4444)
	for _, e := range old.Effects { // by a person who retries what was unknown
		if r := a.Execute(t.Context(), sdk.Attempt{Effect: e}, nil); r.Outcome != sdk.Done {
			t.Errorf("%+v", r)
		}
		if r := a.Probe(t.Context(), sdk.Attempt{Effect: e}, nil); r.Outcome != sdk.Done {
			t.Errorf("%+v", r)
		}
	}
	list, err := filepath.Glob(dir + "/usage-2026-10-01..2026-11-01-bell-*")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if page := contentOf(t, list[0], "index.html"); !strings.Contains(page, "4444") {
		t.Error("an older page has replaced the newest:\n", page)
	}
	for _, broken := range []string{"", "{", "[]"} { // by another program
		if err := os.WriteFile(filepath.Join(list[0], "entry.json"), []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		c.does(a, old)
	}
}

// A file that is not text is published byte by byte.
func TestSite_Workbook_IsPublishedAsItIs(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	a, err := configureAll(t, fmt.Sprintf("report = \"usage\"\nattach = [\"xlsx\"]\nsite {\n directory = %q\n}\n", dir))
	if err != nil {
		t.Fatal(err)
	}
	c.does(a, c.plans(a, nil, nil))
	list, err := filepath.Glob(dir + "/*/usage-*.xlsx")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	book, err := zip.OpenReader(list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	for _, f := range book.File {
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r) // checks the sum
		}
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func TestSite_InABucket_IsThatOfADirectory(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	inDirectory := siteAction(t, dir, "each = \"pi\"")
	c.does(inDirectory, c.plans(inDirectory, nil, nil))
	refuses := false
	bucket := &s3test.Server{Refuse: func(r *http.Request) (int, string) {
		if refuses && r.Method == http.MethodPut {
			return http.StatusForbidden, "AccessDenied"
		}
		return 0, ""
	}}
	h := httptest.NewServer(bucket)
	t.Cleanup(h.Close)
	a := bucketAction(t, h.URL, "www")
	c.asked = nil // by which the time goes on
	p := c.plans(a, nil, nil)
	refuses = true
	if r := a.Execute(t.Context(), sdk.Attempt{Effect: p.Effects[0]}, nil); r.Outcome != sdk.Retry {
		t.Errorf("the bucket refuses: %+v", r)
	}
	refuses = false
	if r := a.Probe(t.Context(), sdk.Attempt{Effect: p.Effects[0]}, nil); r.Outcome != sdk.Retry {
		t.Errorf("nothing is in the bucket: %+v", r)
	}
	for range 2 { // a second time does no harm
		c.does(a, p)
	}
	for _, e := range p.Effects {
		if r := a.Probe(t.Context(), sdk.Attempt{Effect: e}, nil); r.Outcome != sdk.Done {
			t.Errorf("all is in the bucket: %+v", r)
		}
	}
	h.Close() // it serves no more
	want := walk(t, dir)
	if len(bucket.Objects) != len(want) {
		t.Errorf("%d objects, %d files", len(bucket.Objects), len(want))
	}
	for _, path := range want {
		if got := string(bucket.Objects["archive/www/"+path]); got != contentOf(t, dir, path) {
			t.Errorf("%s in the bucket: %q", path, got)
		}
	}
}

// gate is a store that stops once, before a step or before the first byte of a file.
type gate struct {
	filestore.Store

	left int // steps until then
	stop func()
}

func (g *gate) step() {
	if g.left--; g.left == 0 {
		g.stop()
	}
}

func (g *gate) Open(ctx context.Context, name string) (*filestore.File, error) {
	g.step()
	return g.Store.Open(ctx, name)
}

func (g *gate) List(ctx context.Context, folder string) ([]string, error) {
	g.step()
	return g.Store.List(ctx, folder)
}

func (g *gate) Put(ctx context.Context, name string, write func(io.Writer) error, check func(*filestore.File) error) error {
	g.step()
	return g.Store.Put(ctx, name, func(w io.Writer) error { g.step(); return write(w) }, check)
}

// A leader that is stopped between two steps of a page, and goes on when another one has published
// a newer or an older page there, leaves the newer one whole.
func TestSite_StoppedBetweenAnySteps_IsWholeAndOfTheNewerPage(t *testing.T) {
	c := newCluster(t)
	planned := siteAction(t, t.TempDir(), "each = \"pi\"")
	first := c.plans(planned, nil, nil)
	c.hours["bell"] = 2000
	second, err := planned.Plan(t.Context(), sdk.PlanStart{Now: now().Add(10 * time.Minute), State: first.State}, sdk.NewData(c))
	if err != nil || len(second.Effects) != 1 {
		t.Fatalf("%d effects, %v", len(second.Effects), err)
	}
	newer := second.Effects[0]
	older := first.Effects[slices.IndexFunc(first.Effects, func(e sdk.Effect) bool { return e.Name == newer.Name })]
	page, err := readPublication(newer.Payload)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(&s3test.Server{})
	t.Cleanup(h.Close)
	for i, order := range []struct{ stopped, other sdk.Effect }{{older, newer}, {newer, older}} {
		prefix := func(n int) string { return fmt.Sprintf("www/%d/%d", i, n) }
		for n := 1; ; n++ {
			one, other := bucketAction(t, h.URL, prefix(n)), bucketAction(t, h.URL, prefix(n))
			there := other.config.Site.files
			content := func(name string) string {
				text, err := filestore.ReadFile(t.Context(), there, name, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			g := &gate{Store: one.config.Site.files, left: n}
			g.stop = func() {
				if r := other.Execute(t.Context(), sdk.Attempt{Effect: order.other}, nil); r.Outcome != sdk.Done {
					t.Fatalf("step %d: %+v", n, r)
				}
			}
			one.config.Site.files = g
			r := one.Execute(t.Context(), sdk.Attempt{Effect: order.stopped}, nil)
			if g.left > 0 {
				if n < 10 {
					t.Errorf("a page has %d steps", n)
				}
				break
			}
			if r.Outcome != sdk.Done {
				t.Fatalf("step %d: %+v", n, r)
			}
			for name, want := range page.Files {
				if got := content(page.Folder + "/" + name); got != want {
					t.Errorf("step %d: %s is not that of the newer page", n, name)
				}
			}
			if p := other.Probe(t.Context(), sdk.Attempt{Effect: newer}, nil); p.Outcome != sdk.Done || strings.Contains(p.Message, "newer") {
				t.Errorf("step %d: %+v", n, p)
			}
			var feed atom
			if err := xml.Unmarshal([]byte(content("feed.xml")), &feed); err != nil {
				t.Fatal(err)
			}
			if at := page.Updated.UTC().Format(time.RFC3339); len(feed.Entries) != 1 || feed.Updated != at || strings.Count(content("index.html"), "<li>") != 1 {
				t.Errorf("step %d: the feed is of %s, the page of %s:\n%s", n, feed.Updated, at, content("index.html"))
			}
		}
	}
}

func TestSite_InterruptedAnywhere_IsWholeAfterTheNextAttempt(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	a := siteAction(t, dir, "")
	p := c.plans(a, nil, nil)
	c.does(a, p)
	want := map[string]string{}
	for _, path := range walk(t, dir) {
		want[path] = contentOf(t, dir, path)
	}
	attempt := sdk.Attempt{Effect: p.Effects[0]}
	for lost := range want {
		if err := os.Remove(filepath.Join(dir, lost)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(lost, entryFile) {
			if r := a.Probe(t.Context(), attempt, nil); r.Outcome != sdk.Retry {
				t.Errorf("without %s: %+v", lost, r)
			}
		}
		left := filepath.Join(dir, filepath.Dir(lost), "."+filepath.Base(lost)+".1.new") // as a crash leaves it
		if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.does(a, p)
		got := walk(t, dir)
		if len(got) != len(want) {
			t.Errorf("without %s there are then %v", lost, got)
		}
		for _, path := range got {
			if contentOf(t, dir, path) != want[path] {
				t.Errorf("%s differs", path)
			}
		}
		if r := a.Probe(t.Context(), attempt, nil); r.Outcome != sdk.Done {
			t.Errorf("%+v", r)
		}
	}
}

func walk(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path) // it is below
			list = append(list, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSite_HostilePayloadsAndFolders_ChangeNothing(t *testing.T) {
	dir := t.TempDir()
	a := siteAction(t, dir, "")
	for _, payload := range []string{
		`{"version":1,"folder":"../x","files":{}}`, `{"version":1,"folder":"","files":{}}`, `{"version":1,"folder":".","files":{}}`,
		`{"version":2,"folder":"x","files":{}}`, `{"folder`,
	} {
		if r := a.Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte(payload)}}, nil); r.Outcome != sdk.Rejected {
			t.Errorf("%s: %+v", payload, r)
		}
	}
	if list := walk(t, dir); len(list) != 0 {
		t.Error(list)
	}
	c := newCluster(t)
	p := c.plans(a, nil, nil)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r := a.Execute(t.Context(), sdk.Attempt{Effect: p.Effects[0]}, nil); r.Outcome != sdk.Retry || !strings.Contains(r.Message, "is it mounted?") {
		t.Errorf("%+v", r)
	}
}

func TestProbe_AMail_IsNotKnown(t *testing.T) {
	a, err := configure(t, "to = [\"a@example.org\"]")
	if err != nil {
		t.Fatal(err)
	}
	if r := a.Probe(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte("From: a@example.org\r\nTo: b@example.org\r\n\r\ntext\r\n")}}, nil); r.Outcome != sdk.Unknown {
		t.Errorf("%+v", r)
	}
	if r := a.Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte("{}")}}, nil); r.Outcome != sdk.Rejected {
		t.Errorf("%+v", r)
	}
}
