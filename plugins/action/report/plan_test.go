package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// cluster answers as the daemon does: every subject that has hours has used them.
type cluster struct {
	t      *testing.T
	hours  map[string]int // by the value of where[KEY]; "": of all
	people []v1.Person
	all    []v1.Project
	fails  map[string]int // status by subject
	asked  []string

	advised map[string]bool // the users with a table of advice
}

func october(day int) v1.Time {
	return v1.Time{Time: time.Date(2026, 10, day, 0, 0, 0, 0, time.UTC)}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked = append(c.asked, r.URL.RequestURI())
	q := r.URL.Query()
	var out any
	switch r.URL.Path {
	case "/v1/reports":
		takes := func(names ...string) (list []v1.ReportParameter) {
			for _, name := range names {
				list = append(list, v1.ReportParameter{Name: name})
			}
			return list
		}
		out = v1.Reports{Reports: []v1.Report{
			{Name: "usage", Title: "Usage", Parameters: takes("period", "where")}, {Name: "statement", Title: "Statement", Parameters: takes("period", "of")},
			{Name: "person", Title: "Person", Parameters: takes("period", "user")}, {Name: "budgets", Title: "Budgets", Parameters: takes("at")},
		}}
	case "/v1/directory":
		out = v1.Directory{Keys: v1.DirectoryKeys{User: "user_id", Group: "group_id"}, People: c.people, Projects: c.all}
	case "/v1/usage":
		u := v1.Usage{UsageAbout: v1.UsageAbout{Window: v1.UsageSpan{From: october(1), To: october(32)}}}
		if q.Get("window") == "this-month" {
			u.Window.To = v1.Time{Time: now().Truncate(time.Hour)}
		}
		for id := range c.hours {
			if id == "" {
				continue
			}
			u.Groups = append(u.Groups, v1.UsageGroup{Values: []*string{&id}})
		}
		out = u
	default:
		id := q.Get("user")
		for key := range q {
			if strings.HasSuffix(key, "]") && !strings.Contains(key, "site_id") {
				id = q.Get(key)
			}
		}
		if c.fails[id] > 0 || c.hours[id] == 0 {
			w.WriteHeader(max(c.fails[id], 404))
			fmt.Fprintf(w, `{"detail":"there is nothing to report: no record of %s ran in last-month"}`, id)
			return
		}
		if q.Get("format") == "html" {
			fmt.Fprintf(w, "<!doctype html><title>print</title><p>Made at %d", len(c.asked))
			return
		}
		document := v1.Document{
			Format: 1, Report: "usage", Title: "Usage by user_id", Zone: "UTC", Made: v1.Time{Time: now().Add(time.Duration(len(c.asked)) * time.Second)}, Notes: []string{"a <note>"},
			Periods: []v1.DocumentPeriod{{Name: "October 2026", From: october(1), To: october(32)}},
			Tables: []v1.DocumentTable{{
				Name: "usage", Title: "Usage", Rows: [][]v1.Cell{{v1.Words("ann & bob"), v1.Rat(big.NewRat(int64(c.hours[id]), 3))}},
				Columns: []v1.DocumentTableColumn{{Name: "user_id", Title: "user_id", Kind: "text"}, {Name: "Cores", Title: "Cores", Kind: "number", Unit: "core-hours", Period: 1}},
			}},
		}
		if c.advised[id] {
			document.Tables = append(document.Tables, v1.DocumentTable{
				Name: "advice", Title: "Advice", Columns: []v1.DocumentTableColumn{{Name: "finding", Title: "Finding", Kind: "text"}}, Rows: [][]v1.Cell{{v1.Words("One core used of several")}},
			})
		}
		out = document
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		c.t.Error(err)
	}
}

func now() time.Time { return time.Date(2026, 11, 3, 7, 0, 0, 0, time.UTC) }

// configure reads the inside of a config block. It has a mail block behind it.
func configure(t *testing.T, text string) (*action, error) {
	t.Helper()
	return configureAll(t, "report = \"usage\"\n"+text+"\nmail {\n from = \"Accounting <accounting@example.org>\"\n host = \"localhost\"\n tls = \"none\"\n}\n")
}

func configureAll(t *testing.T, text string) (*action, error) {
	t.Helper()
	a := &action{}
	return a, a.Configure(t.Context(), plugintest.Config(t, "monthly", text))
}

// plans makes a plan, which must be one.
func (c *cluster) plans(a *action, state []byte, arguments map[string]string) sdk.Plan {
	c.t.Helper()
	p, err := a.Plan(c.t.Context(), sdk.PlanStart{Now: now(), State: state, Arguments: arguments}, sdk.NewData(c))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func names(p sdk.Plan) (list []string) {
	for _, e := range p.Effects {
		list = append(list, strings.TrimPrefix(e.Name, "mail 2026-10-01..2026-11-01 "))
	}
	return list
}

func newCluster(t *testing.T) *cluster {
	return &cluster{
		t: t, hours: map[string]int{"": 100, "bell": 10, "curie": 7},
		people: []v1.Person{{ID: "bell", Name: "A. Bell", Email: "bell@example.org"}, {ID: "dirac", Email: "dirac@example.org"}, {ID: "curie"}},
		all: []v1.Project{
			{ID: "labs", PI: "bell", PIName: "A. Bell", Groups: []string{"bellgrp"}}, {ID: "theory", PI: "dirac", Groups: []string{"diracgrp"}},
			{ID: "radium", PI: "curie", Groups: []string{"curiegrp"}},
		},
	}
}

func TestPlan_TablesOfEachUser_AreSentWhereThereAreSome(t *testing.T) {
	c := newCluster(t)
	text := "each = \"user\"\ntables = [\"advice\"]\nattach = [\"csv\"]\nrecipient \"curie\" { to = [\"curie@example.org\"] }\n"
	a, err := configurePerson(t, text)
	if err != nil {
		t.Fatal(err)
	}
	c.advised = map[string]bool{"bell": true}
	p := c.plans(a, nil, nil)
	if got := strings.Join(names(p), "; "); got != "user=bell to=bell@example.org" {
		t.Fatal(got, p.Notes)
	}
	if shown := p.Effects[0].Show; !strings.Contains(shown, "One core used of several") || strings.Contains(shown, "ann & bob") {
		t.Errorf("the mail has other tables, or lacks that of advice:\n%s", shown)
	}
	notes := strings.Join(p.Notes, "; ")
	for _, want := range []string{"no usage of dirac", "no table advice in the report of curie"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
	if asked := strings.Join(c.asked, " "); !strings.Contains(asked, "user=bell") || strings.Contains(asked, "where%5B") {
		t.Errorf("asked %s", asked)
	}
	if _, err := configurePerson(t, strings.Replace(text, "csv", "html", 1)); err == nil || !strings.Contains(err.Error(), "html has all tables") {
		t.Error(err)
	}
}

func TestPlan_ReportOfAPointInTime_IsAskedForThatOfThePeriod(t *testing.T) {
	c := newCluster(t)
	a, err := configureAll(t, "report = \"budgets\"\nto = [\"head@example.org\"]\nmail {\n from = \"a@example.org\"\n host = \"localhost\"\n tls = \"none\"\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if p := c.plans(a, nil, nil); len(p.Effects) != 1 {
		t.Errorf("%d mails, want 1: %v", len(p.Effects), p.Notes)
	}
	if asked := strings.Join(c.asked, " "); !strings.Contains(asked, "/v1/reports/budgets?at=last-month") || strings.Contains(asked, "period=") {
		t.Errorf("asked %s", asked)
	}
}

// configurePerson configures the report person for the week before.
func configurePerson(t *testing.T, text string) (*action, error) {
	t.Helper()
	return configureAll(t, "report = \"person\"\nperiod = [\"last-month\"]\n"+text+"\nmail {\n from = \"a@example.org\"\n host = \"localhost\"\n tls = \"none\"\n}\n")
}

func TestPlan_EachPrincipalInvestigator_GetsTheirOwn(t *testing.T) {
	c := newCluster(t)
	a, err := configure(t, "to = [\"head@example.org\", \"Head <HEAD@example.org>\"]\neach = \"pi\"\nwhere = { site_id = \"nemo\" }")
	if err != nil {
		t.Fatal(err)
	}
	p := c.plans(a, nil, nil)
	if got := strings.Join(names(p), "; "); got != "to=head@example.org; pi=bell to=bell@example.org; pi=dirac to=dirac@example.org" {
		t.Fatal(got)
	}
	for i, want := range []string{"Usage by user_id: October 2026", "Usage by user_id – A. Bell (bell): October 2026", "Usage – dirac: October 2026"} {
		if p.Effects[i].Summary != want {
			t.Errorf("%q, want %q", p.Effects[i].Summary, want)
		}
	}
	if show := p.Effects[2].Show; !strings.Contains(show, "\nNothing was used in October 2026.\n") {
		t.Error(show)
	}
	if notes := strings.Join(p.Notes, "\n"); !p.Partial || !strings.Contains(notes, "no address of curie: set email of the person, or a block recipient \"curie\"") {
		t.Error(p.Partial, notes)
	}
	asked := strings.Join(c.asked, "\n")
	if !strings.Contains(asked, "/v1/directory?at=2026-10-31T23%3A59%3A59Z") || !strings.Contains(asked, "where%5Bpi%5D=bell&where%5Bsite_id%5D=nemo") || strings.Contains(asked, "where%5Bpi%5D=curie") {
		t.Error(asked)
	}
}

func TestPlan_EachOfEveryKind_GoesToWhomTheDirectoryNames(t *testing.T) {
	for each, want := range map[string]string{
		"project": "project=labs to=bell@example.org; project=radium to=a@example.org; project=radium to=b@example.org; project=theory to=dirac@example.org",
		"group":   "group=bellgrp to=bell@example.org; group=diracgrp to=dirac@example.org; group=radium to=a@example.org; group=radium to=b@example.org",
		"user":    "user=bell to=bell@example.org; user=dirac to=dirac@example.org; user=radium to=a@example.org; user=radium to=b@example.org",
	} {
		c := newCluster(t)
		a, err := configure(t, fmt.Sprintf("each = %q\nrecipient \"radium\" { to = [\"a@example.org\", \"b@example.org\"] }", each))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(c.plans(a, nil, nil)), "; "); got != want {
			t.Errorf("%s: %s, want %s", each, got, want)
		}
		key := map[string]string{"project": "project", "group": "group_id", "user": "user_id"}[each]
		if asked := strings.Join(c.asked, "\n"); !strings.Contains(asked, "where%5B"+key+"%5D=radium") || !strings.Contains(asked, "by="+key) {
			t.Error(asked)
		}
	}
}

func TestPlan_PlannedOnce_IsNeverPlannedAgain(t *testing.T) {
	c := newCluster(t)
	a, err := configure(t, "to = [\"head@example.org\"]\neach = \"pi\"\nwithout_usage = \"note\"")
	if err != nil {
		t.Fatal(err)
	}
	first := c.plans(a, nil, nil)
	if got := strings.Join(names(first), "; "); got != "to=head@example.org; pi=bell to=bell@example.org" || !slices.Contains(first.Notes, "October 2026: no usage of dirac") {
		t.Fatal(got, first.Notes)
	}
	c.hours["dirac"] = 1 // a record that came late
	c.people[2].Email = "curie@example.org"
	second := c.plans(a, first.State, nil)
	if got := strings.Join(names(second), "; "); got != "pi=curie to=curie@example.org; pi=dirac to=dirac@example.org" || !slices.Contains(second.Notes, "October 2026: sent before to 2 recipients") {
		t.Fatal(got, second.Notes)
	}
	third := c.plans(a, second.State, nil)
	if len(third.Effects) != 0 || third.Partial || len(third.State) != 1+4*digestBytes {
		t.Errorf("%+v", third)
	}
	if other := c.plans(a, third.State, map[string]string{"period": "this-month"}); len(other.Effects) != 4 || !strings.HasPrefix(other.Effects[0].Name, "mail 2026-10-01..2026-11-03 ") {
		t.Errorf("%+v", other)
	}
}

func TestPlan_MessageID_IsOfActionPeriodSubjectAndRecipient(t *testing.T) {
	ids := map[string]string{}
	for _, label := range []string{"monthly", "weekly"} {
		for _, each := range []string{"pi", "user"} {
			for _, period := range []string{"last-month", "this-month"} {
				c := newCluster(t)
				a, err := configure(t, fmt.Sprintf("each = %q\nto = [\"bell@example.org\"]\nperiod = %q", each, period))
				if err != nil {
					t.Fatal(err)
				}
				a.config.label = label
				for _, e := range c.plans(a, nil, nil).Effects {
					_, rest, _ := strings.Cut(string(e.Payload), "\r\nMessage-ID: <")
					id, _, ok := strings.Cut(rest, ">")
					what := label + " " + e.Name
					if before := ids[id]; !ok || !strings.HasSuffix(id, "@example.org") || before != "" && before != what {
						t.Errorf("%q is the id of %q and of %q", id, before, what)
					}
					ids[id] = what
				}
			}
		}
	}
	if len(ids) != 2*2*(1+2+2) {
		t.Errorf("%d ids: %v", len(ids), ids)
	}
}

func TestPlan_OneSubjectFails_OthersGetTheirs(t *testing.T) {
	c := newCluster(t)
	c.fails = map[string]int{"bell": http.StatusUnprocessableEntity}
	a, err := configure(t, "to = [\"head@example.org\"]\neach = \"pi\"")
	if err != nil {
		t.Fatal(err)
	}
	p := c.plans(a, nil, nil)
	if got := strings.Join(names(p), "; "); got != "to=head@example.org; pi=dirac to=dirac@example.org" || !p.Partial || !strings.Contains(strings.Join(p.Notes, "\n"), "A. Bell (bell): ") {
		t.Error(got, p.Notes)
	}
	c.fails = map[string]int{"bell": http.StatusServiceUnavailable}
	if _, err := a.Plan(t.Context(), sdk.PlanStart{Now: now()}, sdk.NewData(c)); err == nil {
		t.Error("a cluster that cannot answer gives a plan")
	}
}

func TestPlan_MoreThanARunHasRoomFor_IsForTheNext(t *testing.T) {
	c := newCluster(t)
	c.hours = map[string]int{"": 1}
	for i := range maxEffects + 10 {
		c.people = append(c.people, v1.Person{ID: fmt.Sprint("u", i), Email: v1.Text(fmt.Sprintf("u%d@example.org", i))})
	}
	a, err := configure(t, "each = \"user\"")
	if err != nil {
		t.Fatal(err)
	}
	first := c.plans(a, nil, nil)
	second := c.plans(a, first.State, nil)
	if len(first.Effects) != maxEffects || !first.Partial || len(second.Effects) != 12 || second.Partial || len(second.State) > 64<<10 {
		t.Errorf("%d, %v, %d, %v", len(first.Effects), first.Notes, len(second.Effects), second.Notes)
	}
}

func TestPlan_WrongArgumentsAndReports_AreErrors(t *testing.T) {
	c := newCluster(t)
	a, err := configure(t, "to = [\"head@example.org\"]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Plan(t.Context(), sdk.PlanStart{Now: now(), Arguments: map[string]string{"month": "x"}}, sdk.NewData(c)); err == nil || !strings.Contains(err.Error(), `unknown argument "month": use period=`) {
		t.Error(err)
	}
	a.config.Report = "usages"
	if _, err := a.Plan(t.Context(), sdk.PlanStart{Now: now()}, sdk.NewData(c)); err == nil || err.Error() != `unknown report "usages": use usage, statement, person, budgets` {
		t.Error(err)
	}
	for _, bad := range [][]byte{{2}, {1, 2}, []byte("{}")} {
		if _, err := a.Plan(t.Context(), sdk.PlanStart{Now: now(), State: bad}, sdk.NewData(c)); err == nil {
			t.Errorf("the state %v is taken", bad)
		}
	}
}

func TestPlan_Statement_IsAskedByOf(t *testing.T) {
	c := newCluster(t)
	a, err := configure(t, "to = [\"head@example.org\"]\neach = \"pi\"")
	if err != nil {
		t.Fatal(err)
	}
	a.config.Report = "statement"
	c.plans(a, nil, nil)
	if asked := strings.Join(c.asked, "\n"); !strings.Contains(asked, "of%5Bpi%5D=bell") {
		t.Error(asked)
	}
}

func TestPlan_TemplateFailsForOne_OthersGetTheirs(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	text := `{{if eq .Of "A. Bell (bell)"}}{{index .Tables 9}}{{end}}x`
	if err := os.WriteFile(filepath.Join(dir, "mail.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := configure(t, fmt.Sprintf("to = [\"head@example.org\"]\neach = \"pi\"\ntemplates = %q", dir))
	if err != nil {
		t.Fatal(err)
	}
	p := c.plans(a, nil, nil)
	if got := strings.Join(names(p), "; "); got != "to=head@example.org; pi=dirac to=dirac@example.org" || !p.Partial || !strings.Contains(strings.Join(p.Notes, "\n"), "no mail or page of A. Bell (bell), because a template fails: ") {
		t.Error(got, p.Notes)
	}
	if again := c.plans(a, p.State, nil); len(again.Effects) != 0 || !again.Partial {
		t.Error(names(again), again.Notes)
	}
}

func TestTemplates_TableWithoutRows_IsTriedWhenLoaded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mail.txt"), []byte("{{range .Tables}}{{index .Rows 0}}{{end}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := configure(t, fmt.Sprintf("to = [\"head@example.org\"]\ntemplates = %q", dir)); err == nil || !strings.Contains(err.Error(), "mail.txt:1:") {
		t.Error(err)
	}
}

func TestTemplates_AFolder_ReplacesAndIsChecked(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	set := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("subject.txt", "Rechnung\r\nBcc: x@example.org {{.Period}}")
	a, err := configure(t, fmt.Sprintf("to = [\"head@example.org\"]\ntemplates = %q", dir))
	if err != nil {
		t.Fatal(err)
	}
	if e := c.plans(a, nil, nil).Effects[0]; e.Summary != "Rechnung Bcc: x@example.org October 2026" || strings.Contains(string(e.Payload), "\nBcc:") {
		t.Errorf("%q %s", e.Summary, e.Payload)
	}
	for text, want := range map[string]string{
		"\n\n{{.Titel}}": "mail.html:3:",
		"\n{{if}}":       "mail.html:2:",
		"a\nb\nc{{range .Tables}}\n{{.Rows.X}}{{end}}": "mail.html:4:",
		"<a href=\"{{if .Of}}\">{{end}}":               "mail.html",
		"{{nothing}}":                                  "mail.html:1:",
		"{{day .Title .Zone}}":                         "mail.html:1:",
	} {
		set("mail.html", text)
		_, err := configure(t, fmt.Sprintf("to = [\"head@example.org\"]\ntemplates = %q", dir))
		if err == nil || !strings.Contains(err.Error(), dir+"/"+want) || !strings.Contains(err.Error(), plugintest.ConfigFile+":3") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := os.Rename(filepath.Join(dir, "mail.html"), filepath.Join(dir, "mails.html")); err != nil {
		t.Fatal(err)
	}
	if _, err := configure(t, fmt.Sprintf("to = [\"head@example.org\"]\ntemplates = %q", dir)); err == nil || !strings.Contains(err.Error(), "mails.html: unknown template: use index.html, mail.html, mail.txt, subject.txt") {
		t.Error(err)
	}
}
