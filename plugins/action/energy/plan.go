package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/big"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/csvtext"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// planner makes the plan of a run.
type planner struct {
	*config

	start  sdk.PlanStart
	data   *sdk.Data
	window v1.UsageSpan
	done   []string // ids of what was planned
	again  string   // in the names of files that are written again
	out    sdk.Plan
}

// table is a file.
type table struct {
	name    string
	title   string
	columns []string
	rows    [][]string
}

// maxKnown is how many ids the state has, below what a daemon keeps.
const maxKnown = 1500

// planTables plans what was not planned before of the tables of the period.
func (p *planner) planTables(ctx context.Context) (sdk.Plan, error) {
	word := p.Period
	for name, value := range p.start.Arguments {
		switch {
		case name == "period":
			word = value
		case name == "files" && value == "again":
			p.again = " again at " + p.start.Now.UTC().Format(time.RFC3339)
		default:
			return p.out, fmt.Errorf("unknown argument %s=%s: use period=WINDOW, such as period=2026-03, and files=again", name, value)
		}
	}
	if len(p.start.State) > 0 {
		if err := json.Unmarshal(p.start.State, &p.done); err != nil {
			return p.out, fmt.Errorf("the state of the action has another format; run the newer plugin: %w", err)
		}
	}
	if err := p.setZone(ctx); err != nil {
		return p.out, err
	}
	used, err := p.data.API().Usage(ctx, &v1.UsageQuery{Window: word, Zone: p.Zone, Measure: "records", Where: p.Where})
	if err != nil {
		return p.out, fmt.Errorf("period %q: %w", word, err)
	}
	p.window = used.Window
	if p.window.To.After(p.start.Now) {
		return p.out, fmt.Errorf("period %q has not ended: use an earlier one, such as last-month", word)
	}
	tables, err := p.makeTables(ctx, word)
	if err != nil {
		return p.out, err
	}
	for _, t := range tables {
		if err := p.planFile(&t); err != nil {
			return p.out, err
		}
	}
	for _, to := range p.to {
		if err := p.planMail(to, tables); err != nil {
			return p.out, err
		}
	}
	p.out.State, err = json.Marshal(p.done[max(0, len(p.done)-maxKnown):])
	return p.out, err
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

// periodKey names the period in files and messages.
func (p *planner) periodKey() string {
	from, to := p.window.From.In(p.zone), p.window.To.In(p.zone)
	if from.Day() == 1 && from.AddDate(0, 1, 0).Equal(to) {
		return from.Format("2006-01")
	}
	return from.Format(time.DateOnly) + ".." + to.Format(time.DateOnly)
}

func (p *planner) makeTables(ctx context.Context, word string) ([]table, error) {
	if p.Compat != nil {
		from := p.window.From.UTC()
		if len(p.periodKey()) != len("2026-03") {
			return nil, fmt.Errorf("period %q is not a month: AUDITOR's table is of one", word)
		}
		t, err := p.auditorTable(ctx, from, p.window.To.UTC())
		t.name, t.title = fmt.Sprintf("%s_%s_%d_%d.csv", p.Name, p.label, from.Month(), from.Year()), "Monthly Utilisation Summary"
		return []table{t}, err
	}
	var list []table
	for _, key := range p.By {
		t, err := p.usageTable(ctx, word, key)
		if err != nil {
			return nil, fmt.Errorf("by %s: %w", key, err)
		}
		list = append(list, t)
	}
	used, err := p.data.API().Usage(ctx, &v1.UsageQuery{Window: word, Zone: p.Zone, Measure: v1.JoinList("energy", "co2"), Where: p.Where})
	if err != nil {
		return nil, fmt.Errorf("period %q: %w", word, err)
	}
	p.out.Notes = used.Energy.Notes()
	return list, nil
}

// column is one of a table, and the measure that it shows.
type column struct {
	head, measure string
	over          int64 // by how much it is divided
}

func (p *planner) figureColumns() []column {
	list := []column{
		{"khs23h", p.Cores + "*" + p.Benchmark, 1000}, {"cpu_eff", "efficiency", 1}, {"corehours", p.Cores, 1}, {"power [kWh]", "energy", 1},
		{"measured [kWh]", "energy_measured", 1}, {"modelled [kWh]", "energy_modelled", 1}, {"co2 [kg]", "co2", 1}, {"embodied [kg]", "co2_embodied", 1},
	}
	if p.Benchmark == "" {
		return list[1:]
	}
	return list
}

// usageTable asks for the figures by a key. What is not known is empty.
func (p *planner) usageTable(ctx context.Context, word, key string) (table, error) {
	columns := p.figureColumns()
	t := table{name: fmt.Sprintf("%s_%s_%s.csv", p.Name, key, p.periodKey()), title: "Utilization by " + key + ", " + p.periodKey(), columns: []string{key}}
	var measures []string
	for _, c := range columns {
		t.columns, measures = append(t.columns, c.head), append(measures, c.measure)
	}
	q := &v1.UsageQuery{Window: word, Zone: p.Zone, Measure: v1.JoinList(measures...), By: v1.JoinList(key), Where: p.Where, Unit: "hour", Cores: p.Cores}
	for row, err := range p.data.Usage(ctx, q) {
		if err != nil {
			return t, err
		}
		line := []string{row.Group[key]}
		for _, c := range columns {
			text, err := divideFigure(row.Measures[c.measure], c.over)
			if err != nil {
				return t, fmt.Errorf("%s: %w", c.measure, err)
			}
			line = append(line, text)
		}
		t.rows = append(t.rows, line)
	}
	slices.SortFunc(t.rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return t, nil
}

// divideFigure writes a quotient with all its digits; "" where there is none.
func divideFigure(n json.Number, by int64) (string, error) {
	if n == "" || by == 1 {
		return n.String(), nil
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return "", errors.New("it is not a number: " + n.String())
	}
	text := r.Quo(r, big.NewRat(by, 1)).FloatString(9)
	return strings.TrimRight(strings.TrimRight(text, "0"), "."), nil
}

func (t *table) csvText() (string, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	err := w.Write(t.columns)
	for _, row := range t.rows {
		row = slices.Clone(row)
		row[0] = csvtext.Harmless(row[0])
		err = errors.Join(err, w.Write(row))
	}
	w.Flush()
	return b.String(), errors.Join(err, w.Error())
}

// addEffect adds an effect to the plan unless it was planned before.
func (p *planner) addEffect(e sdk.Effect) {
	sum := sha256.Sum256([]byte(p.label + " " + e.Name))
	id := fmt.Sprintf("%x", sum[:12])
	if !slices.Contains(p.done, id) {
		p.done = append(p.done, id)
		p.out.Effects = append(p.out.Effects, e)
	}
}

// planFile plans a file.
func (p *planner) planFile(t *table) error {
	if p.files == nil {
		return nil
	}
	text, err := t.csvText()
	if err != nil {
		return err
	}
	payload, err := json.Marshal(file{fileVersion, t.name, text})
	p.addEffect(sdk.Effect{Name: "file " + t.name + p.again, Summary: fmt.Sprintf("%s: %d rows", t.title, len(t.rows)), Payload: payload, Show: text})
	return err
}

// planMail plans a mail to one address.
func (p *planner) planMail(to *netmail.Address, tables []table) error {
	sum := sha256.Sum256(fmt.Appendf(nil, "energy %q %q %q", p.label, p.periodKey(), strings.ToLower(to.Address)))
	m := mail.Message{
		To: to, Subject: "Utilization " + p.periodKey(), ID: fmt.Sprintf("bursar.%x@%s", sum[:16], p.server.Domain()), Date: p.start.Now.In(p.zone),
	}
	if p.Compat != nil {
		m.Subject = "Monthly Utilisation Report"
	}
	for i := range tables {
		t := &tables[i]
		text, err := t.csvText()
		if err != nil {
			return err
		}
		if len(t.rows) == 0 {
			text = "Nothing was used.\n"
		}
		m.Text += t.title + "\n\n" + text + "\n"
		m.HTML += t.htmlTable()
		m.Files = append(m.Files, mail.File{Name: t.name, Kind: "text/csv", Data: []byte(text)})
	}
	for _, note := range p.out.Notes {
		m.Text += note + "\n"
		m.HTML += "<p>" + html.EscapeString(note) + "</p>\n"
	}
	payload, err := p.server.Compose(&m)
	p.addEffect(sdk.Effect{
		Name: "mail " + p.periodKey() + " to=" + to.Address, Summary: m.Subject, Payload: payload,
		Show: fmt.Sprintf("To: %s\nSubject: %s\nMessage-ID: <%s>\n\n%s", to, m.Subject, m.ID, m.Text),
	})
	return err
}

func (t *table) htmlTable() string {
	var b strings.Builder
	b.WriteString("<h2>" + html.EscapeString(t.title) + "</h2>\n")
	if len(t.rows) == 0 {
		return b.String() + "<p>Nothing was used.</p>\n"
	}
	line := func(tag string, cells []string) {
		b.WriteString("<tr>")
		for _, c := range cells {
			b.WriteString("<" + tag + ">" + html.EscapeString(c) + "</" + tag + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<table>\n")
	line("th", t.columns)
	for _, row := range t.rows {
		line("td", row)
	}
	return b.String() + "</table>\n"
}
