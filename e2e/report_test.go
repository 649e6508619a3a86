//go:build e2e

package e2e_test

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/pages"
	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const reportAction = `
action "report" %q {
  schedule = "@manual"
  config {
    report = "usage"
    zone   = "Europe/Berlin"
    %s
    mail {
      from          = "Accounting <accounting@example.org>"
      host          = "127.0.0.1"
      port          = %s
      ca            = %q
      user          = "bursar"
      password_file = %q
      auth          = %q
    }
  }
}
`

// mailPassword is of the account at the server of mail.
const mailPassword = "e2e-passw0rd-of-the-mail-account"

// postOffice is an aggregator with usage of the last month, and a server of mail.
type postOffice struct {
	*testing.T
	site *site.Site
	agg  *site.Aggregator
	exim *rig.Exim
	port string
	ca   string
	file string // of the password
}

func newPostOffice(t *testing.T) *postOffice {
	s := site.New(t)
	address := s.Address()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	files := s.Cert(identity.Aggregator, "mail")
	return &postOffice{
		T: t, site: s, agg: s.Aggregator(), port: port, ca: files.CA, file: s.Write("mail.password", mailPassword+"\n"),
		exim: rig.NewExim(t, address, files.Cert, files.Key, "bursar", mailPassword),
	}
}

// action adds an action to the configuration.
func (o *postOffice) action(label, auth, settings string) {
	o.agg.Add(fmt.Sprintf(reportAction, label, settings, o.port, o.ca, o.file, auth))
}

// work writes a job of a group, which ran in the last month for so many hours on so many
// cores.
func (o *postOffice) work(id, group, user string, cores, hours int) {
	o.Helper()
	begin := time.Now().UTC().AddDate(0, -1, 0)
	begin = time.Date(begin.Year(), begin.Month(), 10, 0, 0, 0, 0, time.UTC)
	o.agg.Post("/record", fmt.Sprintf(`{"record_id":%q,"meta":{"group_id":[%q],"user_id":[%q]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":%q,"stop_time":%q}`,
		id, group, user, cores, begin.Format(time.RFC3339), begin.Add(time.Duration(hours)*time.Hour).Format(time.RFC3339)))
}

// bursar runs a command, which must succeed unless it says that something is not well.
func (o *postOffice) bursar(args ...string) string {
	o.Helper()
	out, err := o.agg.Bursar(args...)
	if err != nil {
		o.Fatalf("bursar %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// letter is a mail as it was delivered.
type letter struct {
	header     mail.Header
	text, html string
	files      map[string]string // by name
}

// letters are the mails that were delivered, by the address that they went to.
func (o *postOffice) letters() map[string][]letter {
	out := map[string][]letter{}
	for _, m := range o.exim.Mails() {
		l := letter{header: m.Header, files: map[string]string{}}
		o.parts(&l, m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), "", m.Body)
		to := m.Header.Get("Envelope-To")
		out[to] = append(out[to], l)
	}
	return out
}

// parts reads a part of a mail, and those in it.
func (o *postOffice) parts(l *letter, kind, encoding, name string, body io.Reader) {
	o.Helper()
	media, params, err := mime.ParseMediaType(kind)
	if err != nil {
		o.Fatal(kind, err)
	}
	if strings.HasPrefix(media, "multipart/") {
		for r := multipart.NewReader(body, params["boundary"]); ; {
			p, err := r.NextRawPart()
			if err == io.EOF {
				return
			}
			if err != nil {
				o.Fatal(err)
			}
			o.parts(l, p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p.FileName(), p)
		}
	}
	text := decoded(o.T, encoding, body)
	switch {
	case name != "":
		l.files[name] = text
	case media == "text/plain":
		l.text = text
	default:
		l.html = text
	}
}

// decoded undoes a transfer encoding.
func decoded(t *testing.T, encoding string, body io.Reader) string {
	t.Helper()
	switch encoding {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// figures are the rows of a CSV by their first cell: the core-hours.
func (o *postOffice) figures(text string) map[string]string {
	o.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		o.Fatal(err)
	}
	at := slices.IndexFunc(rows[0], func(name string) bool { return strings.HasPrefix(name, "Cores") }) // of the first period
	out := map[string]string{}
	for _, row := range rows[1:] {
		out[row[0]] = row[at]
	}
	return out
}

// workbook is the first table of a workbook as CSV, without its totals, as openpyxl reads it.
func (o *postOffice) workbook(data string) string {
	o.Helper()
	cmd := exec.Command(rig.Lake(o), filepath.Join(site.Top(), "e2e/testdata/workbook.py"))
	cmd.Stdin, cmd.Stderr = strings.NewReader(data), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		o.Fatal(err)
	}
	return string(out)
}

// usage asks /v1/usage for the core-hours of the last month.
func (o *postOffice) usage(by string) map[string]string {
	o.Helper()
	var a v1.Usage
	if err := o.agg.Get("/v1/usage?window=last-month&zone=Europe/Berlin&unit=hour&measure=Cores&by="+by, &a); err != nil {
		o.Fatal(err)
	}
	out := map[string]string{}
	for i, g := range a.Groups {
		out[*g.Values[0]] = a.Measures[0].Values[i].String()
	}
	return out
}

// ran waits until a run has ended, and returns it.
func (o *postOffice) ran(action string, run int) (out v1.ActionRunEffects) {
	o.Helper()
	o.site.Eventually(fmt.Sprintf("run %d of %s has ended", run, action), func() (bool, string) {
		if err := o.agg.Get(fmt.Sprintf("/v1/actions/%s/runs/%d", action, run), &out); err != nil {
			return false, err.Error()
		}
		return !out.Run.Ended.IsZero(), fmt.Sprintf("%+v", out)
	})
	return out
}

func TestReport_ToPeople_IsMailedOnceWithTheFiguresOfUsage(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t)
	dir := t.TempDir()
	o.action("people", "login", fmt.Sprintf("site { directory = %q }", dir)+`
    attach = ["csv", "xlsx", "html"]
    to = ["Ada <ada@example.org>", "nobody@example.org", "bo@example.org", "ADA@example.org"]`)
	o.agg.Start()
	o.agg.AwaitReady()
	o.work("1", "atlas", "ann", 8, 10)
	o.work("2", "cms", "bob", 3, 7)
	plan := o.bursar("actions", "plan", "report/people")
	if !strings.Contains(plan, "to=bo@example.org") || strings.Count(plan, "Usage by group_id: ") != 4 {
		t.Error(plan)
	}
	o.bursar("actions", "run", "report/people")
	run := o.ran("report/people", 1)
	if run.Run.Done != 3 || run.Run.Rejected != 1 {
		t.Fatalf("%+v", run)
	}
	if history := o.bursar("actions", "history", "report/people", "1"); !strings.Contains(history, "the server refuses nobody@example.org: 550 there is no mailbox of that name here") {
		t.Error(history)
	}
	o.delivered(2)
	for to, list := range o.letters() {
		l := list[0]
		if len(list) != 1 || l.header.Get("From") != `"Accounting" <accounting@example.org>` || l.header.Get("Auto-Submitted") != "auto-generated" || !strings.HasPrefix(l.header.Get("Message-Id"), "<bursar.") {
			t.Errorf("%s: %v", to, list)
		}
		csv := l.files[o.name("csv")]
		if got, want := o.figures(csv), o.usage("group_id"); !maps.Equal(got, want) || want["atlas"] != "80" {
			t.Errorf("%s: the CSV has %v, /v1/usage %v", to, got, want)
		}
		if got, want := o.figures(o.workbook(l.files[o.name("xlsx")])), o.figures(csv); !maps.Equal(got, want) {
			t.Errorf("%s: the workbook has %v, the CSV %v", to, got, want)
		}
		for name, text := range map[string]string{"text": l.text, "html": l.html, "attached": l.files[o.name("html")]} {
			if !strings.Contains(text, "atlas") || !strings.Contains(text, "80") || !strings.Contains(text, "21") {
				t.Errorf("%s: the %s is\n%s", to, name, text)
			}
		}
	}
	o.published(dir)
	if raw := o.bursar("actions", "payload", "report/people", "1", "0"); !strings.Contains(raw, "\r\nTo: \"Ada\" <ada@example.org>\r\n") {
		t.Error(raw)
	}
	o.bursar("actions", "run", "report/people") // the same month
	if again := o.ran("report/people", 2); again.Run.Effects != 0 || !strings.Contains(strings.Join(again.Run.Notes, "\n"), "sent before to 3 recipients") {
		t.Errorf("%+v", again)
	}
	o.agg.Stop()
	nowhere(t, o.agg.DataDir, mailPassword)
	o.delivered(2)
}

// published checks the site of one report.
func (o *postOffice) published(dir string) {
	o.Helper()
	file := func(elem ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{dir}, elem...)...))
		if err != nil {
			o.Fatal(err)
		}
		return string(text)
	}
	folder := strings.TrimSuffix(o.name("csv"), ".csv")
	if got, want := o.figures(file(folder, o.name("csv"))), o.usage("group_id"); !maps.Equal(got, want) {
		o.Errorf("the site has %v, /v1/usage %v", got, want)
	}
	if got, want := o.figures(o.workbook(file(folder, o.name("xlsx")))), o.usage("group_id"); !maps.Equal(got, want) {
		o.Errorf("the workbook of the site has %v, /v1/usage %v", got, want)
	}
	var feed struct {
		Entries []struct {
			Link struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(file("feed.xml")), &feed); err != nil || len(feed.Entries) != 1 || feed.Entries[0].Link.Href != folder+"/" {
		o.Errorf("%+v, %v", feed, err)
	}
	o.look(map[string]string{"index": file("index.html"), "page": file(folder, "index.html")})
}

// delivered waits until the server has so many mails.
func (o *postOffice) delivered(n int) {
	o.Helper()
	o.site.Eventually(fmt.Sprintf("%d mails are delivered", n), func() (bool, string) {
		got := len(o.exim.Mails())
		return got == n, fmt.Sprint(got, " mails\n", o.exim.Log())
	})
}

// name is that of an attached file.
func (o *postOffice) name(form string) string {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		o.Fatal(err)
	}
	now := time.Now().In(zone)
	begin := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, zone)
	return fmt.Sprintf("usage-%s..%s.%s", begin.Format(time.DateOnly), begin.AddDate(0, 1, 0).Format(time.DateOnly), form)
}

const reportPeople = `
person "bell" {
  name  = "A. Bell"
  email = "bell@example.org"
}
person "dirac" { email = "dirac@example.org" }
project "labs" {
  pi     = "bell"
  groups = ["atlas", "cms"]
}
project "theory" {
  pi     = "dirac"
  groups = ["strings"]
}
`

func TestReport_ToEachPrincipalInvestigator_IsTheirsAloneAndLooksRight(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t)
	o.agg.Add(reportPeople)
	o.action("pis", "plain", `each   = "pi"
    period = ["last-month", "last-year"]
    query  = { by = "user_id" }`)
	o.action("groups", "plain", `each = "group"
    query = { by = "user_id" }
    recipient "alone" { to = ["alone@example.org"] }`)
	o.agg.Start()
	o.agg.AwaitReady()
	for i := range 12 {
		o.work(fmt.Sprint("a", i), "atlas", fmt.Sprintf("someone with a long name %d <&>", i), 8, 10+i)
	}
	o.work("c", "cms", "bob", 3, 7)
	o.work("d", "alone", "eve", 1, 1)
	o.bursar("actions", "run", "report/pis")
	if run := o.ran("report/pis", 1); run.Run.Done != 2 || run.Run.Partial {
		t.Fatalf("%+v", run)
	}
	o.delivered(2)
	got := o.letters()
	for to, want := range map[string]string{"bell@example.org": "Usage by user_id – A. Bell (bell): ", "dirac@example.org": "Usage – dirac: "} {
		if len(got[to]) != 1 {
			t.Fatalf("%s has %d mails", to, len(got[to]))
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(got[to][0].header.Get("Subject"))
		if err != nil || !strings.HasPrefix(subject, want) {
			t.Errorf("%q, want %q, %v", subject, want, err)
		}
	}
	bell, dirac := got["bell@example.org"][0], got["dirac@example.org"][0]
	want := o.usage("user_id")
	delete(want, "eve")       // without a project
	if len(bell.files) != 2 { // as by default
		t.Errorf("%d files are attached", len(bell.files))
	}
	for name, text := range bell.files {
		if strings.HasSuffix(name, ".xlsx") {
			text = o.workbook(text)
		}
		if all := o.figures(text); !maps.Equal(all, want) {
			t.Errorf("%s has %v, /v1/usage %v", name, all, want)
		}
	}
	if !strings.Contains(dirac.text, "\nNothing was used in ") || strings.Contains(dirac.html+dirac.text, "bell") || len(dirac.files) != 0 || strings.Contains(bell.html+bell.text, "eve") {
		t.Error(dirac.text, dirac.files)
	}
	o.look(map[string]string{"bell": bell.html, "dirac": dirac.html})
	plan := o.bursar("actions", "plan", "report/groups")
	for _, want := range []string{"group=alone to=alone@example.org", "group=atlas to=bell@example.org", "group=cms to=bell@example.org", "group=strings to=dirac@example.org"} {
		if !strings.Contains(plan, want) {
			t.Errorf("%s is not in\n%s", want, plan)
		}
	}
}

// look renders the mails in a browser of the width of a mail program, in the light and in
// the dark.
func (o *postOffice) look(mails map[string]string) {
	o.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, mails[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	defer server.Close()
	axe, tab := pages.Library(o, "axe"), pages.NewBrowser(o.T).Tab(o, server.URL)
	for name := range mails {
		for scheme, paper := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 27)"} {
			tab.Look(scheme, 600, 900)
			tab.Open("/"+name, 200)
			if wide := pages.Eval[int](tab, "document.documentElement.scrollWidth"); wide > 600 {
				o.Errorf("%s, %s: it is %d pixels wide", name, scheme, wide)
			}
			if got := pages.Eval[string](tab, "getComputedStyle(document.body).backgroundColor"); got != paper {
				o.Errorf("%s, %s: the background is %s, want %s", name, scheme, got, paper)
			}
			if dir := os.Getenv("BURSAR_E2E_PICTURES"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), tab.Picture(), 0o644); err != nil {
					o.Error(err)
				}
			}
			for _, v := range tab.Violations(axe, false) {
				if v.Serious() {
					o.Errorf("%s, %s: %s", name, scheme, v)
				}
			}
			if problems := tab.Problems(); len(problems) > 0 {
				o.Errorf("%s, %s: %q", name, scheme, problems)
			}
		}
	}
}
