package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	netmail "net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/workbook"
)

// planner makes the plan of a run.
type planner struct {
	*config

	start     sdk.PlanStart
	data      *sdk.Data
	report    v1.Report // of the catalogue
	directory v1.Directory
	period    []string
	window    v1.Window // of the first period
	key       string    // of the period
	name      string    // of the period, for people
	state     state

	out     sdk.Plan
	size    int      // of all mails
	again   int      // recipients that have had theirs
	left    int      // mails and pages without room
	beyond  int      // mails that could not be remembered
	quiet   []string // subjects without usage
	failed  []string // subjects whose reports a template does not write
	failure error    // the first of them
	bare    []string // subjects whose reports have none of the tables that are asked for
}

// room is how long the mails of a run may be together, below what a daemon takes. Those
// that do not fit are for the next run.
const room = 48 << 20

// maxName is how long the name of an effect may be without the id, below what a daemon takes.
const maxName = 200

// newPlanner finds out what report of what time it is.
func newPlanner(ctx context.Context, c *config, start sdk.PlanStart, data *sdk.Data) (*planner, error) {
	p := &planner{config: c, start: start, data: data, period: c.Period}
	for name, value := range start.Arguments {
		if name != "period" {
			return nil, fmt.Errorf("unknown argument %q: use period=WINDOW, such as period=2026-03", name)
		}
		p.period = []string{value}
	}
	var err error
	if p.state, err = readState(start.State); err != nil {
		return nil, err
	}
	list, err := data.API().Reports(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list.Reports, func(r v1.Report) bool { return r.Name == c.Report })
	if i < 0 {
		var names []string
		for _, r := range list.Reports {
			names = append(names, r.Name)
		}
		return nil, fmt.Errorf("unknown report %q: use %s", c.Report, strings.Join(names, ", "))
	}
	p.report = list.Reports[i]
	return p, p.setZone(ctx)
}

// setZone sets an unset zone to the site's.
func (p *planner) setZone(ctx context.Context) error {
	zone, err := p.data.API().Clock(ctx, p.Zone)
	if err != nil {
		return err
	}
	c := *p.config
	c.Zone, c.zone = zone.String(), zone
	p.config = &c
	return nil
}

// planMails plans a mail for each recipient that has had none of the period.
func (p *planner) planMails(ctx context.Context) (sdk.Plan, error) {
	if err := p.loadDirectory(ctx, nil); err != nil { // it names the keys
		return p.out, err
	}
	used, err := p.usedSubjects(ctx)
	if err != nil {
		return p.out, err
	}
	if end := p.window.To.Add(-time.Second); end.Before(p.start.Now) {
		if err := p.loadDirectory(ctx, &v1.DirectoryQuery{At: end.UTC().Format(time.RFC3339)}); err != nil {
			return p.out, err
		}
	}
	subjects := p.listSubjects(used)
	for i := range subjects { // before anything new, which would take their room
		if p.Mail == nil {
			subjects[i].to = nil
		}
		for _, a := range subjects[i].to {
			p.state.markRecent(p.messageID(&subjects[i], a))
		}
	}
	for i := range subjects {
		if err := p.planDelivery(ctx, &subjects[i]); err != nil {
			return p.out, err
		}
	}
	if p.again > 0 {
		p.addNote("%s: sent before to %d recipients", p.name, p.again)
	}
	if p.beyond > 0 {
		p.noteLack("%s: %d mails are not planned: an action remembers %d mails that it has sent, so that it sends none twice; use several actions, each with where for its part", p.name, p.beyond, maxKnown)
	}
	if len(p.quiet) > 0 {
		p.addNote("%s: no usage of %s", p.name, abbreviateList(p.quiet))
	}
	if len(p.bare) > 0 {
		p.addNote("%s: no table %s in the report of %s", p.name, strings.Join(p.Tables, " or "), abbreviateList(p.bare))
	}
	if len(p.failed) > 0 {
		p.noteLack("%s: no mail or page of %s, because a template fails: %v", p.name, abbreviateList(p.failed), p.failure)
	}
	if p.left > 0 {
		p.noteLack("%d mails or pages do not fit into this run: the next one has them; bursar actions run report/%s begins it now", p.left, p.label)
	}
	p.out.State = p.state.encodeState()
	return p.out, nil
}

func (p *planner) addNote(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// noteLack notes what the plan should have and does not.
func (p *planner) noteLack(format string, args ...any) {
	p.out.Partial = true
	p.addNote(format, args...)
}

// abbreviateList writes a few of many names, and how many more there are.
func abbreviateList(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// usedSubjects asks which subjects have usage in the period, and when that is.
func (p *planner) usedSubjects(ctx context.Context) (ids []string, err error) {
	a, err := p.data.API().Usage(ctx, &v1.UsageQuery{Window: p.period[0], Zone: p.Zone, Measure: "records", By: p.keyOf(), Where: p.Where})
	if err != nil {
		return nil, fmt.Errorf("period %q: %w", p.period[0], err)
	}
	p.window = v1.Window{From: a.Window.From, To: a.Window.To}
	p.name, p.key = p.window.Name(p.period[0], p.zone), p.periodKey()
	for _, g := range a.Groups {
		if len(g.Values) == 1 && g.Values[0] != nil {
			ids = append(ids, *g.Values[0])
		}
	}
	return ids, nil
}

// periodKey tells a period from others. One that goes on is another one each day; one that is
// shorter than a day, such as 1h, in each such time.
func (p *planner) periodKey() string {
	from, to := p.window.From.Time, p.window.To.Time
	if length := to.Sub(from); length < 20*time.Hour { // a day is longer, whatever the clock does
		return from.Truncate(max(length, time.Second)).UTC().Format("2006-01-02T150405Z")
	}
	if to.After(p.start.Now) {
		to = p.start.Now
	}
	return from.In(p.zone).Format(time.DateOnly) + ".." + to.In(p.zone).Format(time.DateOnly)
}

// planDelivery plans the mails and the page about a subject.
func (p *planner) planDelivery(ctx context.Context, s *subject) error {
	var to []*netmail.Address
	for _, a := range s.to {
		switch {
		case p.state.hasMail(p.messageID(s, a)):
			p.again++
		case p.state.isFull(len(to) + 1):
			p.beyond++
		default:
			to = append(to, a)
		}
	}
	if len(to) == 0 && p.Site == nil {
		return nil
	}
	made, err := p.makeReport(ctx, s)
	refusal, refused := errors.AsType[*sdk.ResponseError](err)
	switch {
	case refused && refusal.Status < http.StatusInternalServerError:
		p.noteLack("%s: %s", cmp.Or(s.displayName(), "all"), refusal.Detail)
		return nil
	case err != nil:
		return err
	case made == nil:
		return nil
	}
	for _, a := range to {
		if err := p.planMail(s, a, made); err != nil {
			return err
		}
	}
	if p.Site != nil {
		return p.planPage(s, made)
	}
	return nil
}

// planMail plans one mail.
func (p *planner) planMail(s *subject, to *netmail.Address, made *content) error {
	id := p.messageID(s, to)
	text, err := p.server.Compose(&mail.Message{
		To: to, Subject: made.subject, ID: id, Date: p.start.Now.In(p.zone), Text: made.text, HTML: made.html, Files: made.files,
	})
	if err != nil {
		return fmt.Errorf("the mail to %s: %w", to.Address, err)
	}
	name := "mail " + p.key + " "
	if s.id != "" {
		name += p.subjectKey(s) + " "
	}
	if name += "to=" + to.Address; len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + " " + id
	}
	if p.addEffect(sdk.Effect{
		Name: name, Summary: made.subject, Payload: text,
		Show: fmt.Sprintf("To: %s\nSubject: %s\nMessage-ID: <%s>\n\n%s", to, made.subject, id, made.text),
	}, "the mail to "+to.Address) {
		p.state.addMail(id)
	}
	return nil
}

// addEffect adds an effect to the plan, and reports whether there was room for it.
func (p *planner) addEffect(e sdk.Effect, what string) bool {
	switch {
	case len(e.Payload) > sdk.MaxPayload:
		p.noteLack("%s has %d MiB, and at most %d are allowed: set a smaller top, or attach less", what, len(e.Payload)>>20, sdk.MaxPayload>>20)
	case p.size+len(e.Payload) > room || len(p.out.Effects) >= maxEffects:
		p.left++
	default:
		p.size += len(e.Payload)
		p.out.Effects = append(p.out.Effects, e)
		return true
	}
	return false
}

// subjectKey is KEY=ID of whom a mail is about; empty of all.
func (p *planner) subjectKey(s *subject) string {
	if s.id == "" {
		return ""
	}
	return p.Each + "=" + s.id
}

// messageID is the same for an action, a period, a subject and a recipient, and for nothing else.
func (p *planner) messageID(s *subject, to *netmail.Address) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", p.label, p.key, p.subjectKey(s), strings.ToLower(to.Address)))
	return fmt.Sprintf("bursar.%x@%s", sum[:16], p.server.Domain())
}

// content is what the mails about a subject have.
type content struct {
	written
	document v1.Document // nothing in it: nothing was used
	files    []mail.File
}

// makeReport asks for the report about a subject and renders it; nil where nothing was used and
// no mail says so, and where a template fails.
func (p *planner) makeReport(ctx context.Context, s *subject) (*content, error) {
	query := p.reportQuery(s)
	l := letter{Action: "report/" + p.label, Title: p.report.Title, Of: s.displayName(), Period: p.name, Zone: p.Zone}
	var c content
	d := &c.document
	err := p.getReport(ctx, query, "json", func(r io.Reader) error { return json.NewDecoder(r).Decode(d) })
	refusal, refused := errors.AsType[*sdk.ResponseError](err)
	switch {
	case refused && refusal.Status == http.StatusNotFound && (p.Unused == "note" || len(p.Tables) > 0):
		p.quiet = append(p.quiet, cmp.Or(s.displayName(), "all"))
		return nil, nil //nolint:nilnil // as documented
	case refused && refusal.Status == http.StatusNotFound:
		l.Nothing = fmt.Sprintf("Nothing was used in %s.", p.name) // the refusal names others
	case err != nil:
		return nil, err
	default:
		if p.selectTables(d); len(d.Tables) == 0 {
			p.bare = append(p.bare, cmp.Or(s.displayName(), "all"))
			return nil, nil //nolint:nilnil // as documented
		}
		l.Title, l.Periods, l.Tables, l.Notes = d.Title, d.Periods, d.Tables, d.Notes
		if c.files, err = p.makeAttachments(ctx, s, query, d); err != nil {
			return nil, err
		}
	}
	for _, f := range c.files {
		l.Attached = append(l.Attached, f.Name)
	}
	if c.written, err = p.templates.renderLetter(&l); err != nil {
		p.failed, p.failure = append(p.failed, cmp.Or(s.displayName(), "all")), cmp.Or(p.failure, err)
		return nil, nil //nolint:nilnil // as documented
	}
	return &c, nil
}

// selectTables leaves the tables in a document that are asked for.
func (p *planner) selectTables(d *v1.Document) {
	if len(p.Tables) > 0 {
		d.Tables = slices.DeleteFunc(d.Tables, func(t v1.DocumentTable) bool { return !slices.Contains(p.Tables, t.Name) })
	}
}

// makeAttachments makes the files beside a report.
func (p *planner) makeAttachments(ctx context.Context, s *subject, query url.Values, d *v1.Document) (files []mail.File, err error) {
	base := strings.Join(slices.DeleteFunc([]string{p.Report, fileNamePart(s.id), p.key}, func(s string) bool { return s == "" }), "-")
	for _, form := range p.Attach {
		var b bytes.Buffer
		kind := "text/" + form
		switch form {
		case "csv":
			err = d.WriteCSV(&b)
		case "xlsx":
			kind, err = workbook.ContentType, workbook.Write(&b, d)
		default:
			err = p.getReport(ctx, query, form, func(r io.Reader) error { _, err := b.ReadFrom(r); return err })
		}
		if err != nil {
			return nil, err
		}
		files = append(files, mail.File{Name: base + "." + form, Kind: kind, Data: b.Bytes()})
	}
	return files, nil
}

// fileNamePart is an id as a part of the name of a file.
func fileNamePart(id string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, id)
}

// hasParameter reports whether the report has a parameter.
func (p *planner) hasParameter(parameter string) bool {
	return slices.ContainsFunc(p.report.Parameters, func(a v1.ReportParameter) bool { return a.Name == parameter })
}

// reportQuery is what the report is told.
func (p *planner) reportQuery(s *subject) url.Values {
	q := url.Values{"zone": {p.Zone}}
	switch {
	case p.hasParameter("period"):
		q["period"] = p.period
	case p.hasParameter("at"): // as that of budgets
		q.Set("at", p.period[0])
	}
	for name, value := range p.Query {
		q.Set(name, value)
	}
	where := maps.Clone(p.Where)
	if s.id != "" {
		where = map[string]string{p.keyOf(): v1.JoinList(s.id)}
		maps.Copy(where, p.Where)
	}
	if p.Each == "user" && s.id != "" && p.hasParameter("user") {
		q.Set("user", s.id) // of the report person
		where = maps.Clone(p.Where)
	}
	param := "where"
	if p.hasParameter("of") {
		param = "of" // of a statement
	}
	for key, value := range where {
		q.Set(param+"["+key+"]", value)
	}
	return q
}

func (p *planner) getReport(ctx context.Context, query url.Values, format string, take func(io.Reader) error) error {
	query = maps.Clone(query)
	query.Set("format", format)
	body, err := p.data.Get(ctx, "/v1/reports/"+url.PathEscape(p.Report)+"?"+query.Encode(), "")
	if err != nil {
		return err
	}
	return errors.Join(take(body), body.Close())
}
