package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/bursar-accounting/bursar/proto/alerts"
)

//go:embed templates
var builtIn embed.FS

// The names of the templates.
const (
	subjectTemplate = "subject.txt"
	textTemplate    = "mail.txt"
)

// templates write what a mail says, by their names.
type templates map[string]*template.Template

// letter is what templates are given.
type letter struct {
	Action            string // type/label
	Zone              string
	URL               string // of the page; "": not known
	Firing, Recovered int    // how many
	Changes           []item // in the order in which they happened
}

// item is a change.
type item struct {
	alerts.Alert

	At        time.Time
	Recovered bool
}

// summaryLine says in a line what has changed.
func (l *letter) summaryLine() string {
	var parts []string
	for i := range l.Changes {
		c := &l.Changes[i]
		word := "firing"
		if c.Recovered {
			word = "recovered"
		}
		parts = append(parts, strings.TrimSpace(c.Rule+" "+c.About)+" "+word)
	}
	const most = 3
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", len(l.Changes)-most))
	}
	return strings.Join(parts, ", ")
}

// Summary is summary, for templates.
func (l *letter) Summary() string { return l.summaryLine() }

// loadTemplates reads the templates of a folder, and takes the built-in ones for those that
// it lacks. All are tried, so that a field that does not exist is an error now. Errors begin
// with the file and the line.
func loadTemplates(dir string) (*templates, error) {
	t := templates{}
	names := []string{textTemplate, subjectTemplate}
	if dir != "" {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !slices.Contains(names, f.Name()) && !strings.HasPrefix(f.Name(), ".") {
				return nil, fmt.Errorf("%s: unknown template: use %s", filepath.Join(dir, f.Name()), strings.Join(names, ", "))
			}
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if dir == "" || errors.Is(err, os.ErrNotExist) {
			path = name
			text, err = builtIn.ReadFile("templates/" + name)
		}
		if err != nil {
			return nil, err
		}
		if t[name], err = template.New(path).Funcs(template.FuncMap{"when": formatTime}).Parse(string(text)); err != nil {
			return nil, stripPlace(err)
		}
	}
	if _, err := t.renderLetter(sampleLetter()); err != nil {
		return nil, stripPlace(err)
	}
	return &t, nil
}

// stripPlace takes off what stands before the file and the line of a template's error.
func stripPlace(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "template: "))
}

// formatTime writes a time by the clock of a zone.
func formatTime(at time.Time, zone string) (string, error) {
	z, err := time.LoadLocation(zone)
	if err != nil {
		return "", err
	}
	return at.In(z).Format("2006-01-02 15:04"), nil
}

// sampleLetter is a letter with a change of each kind.
func sampleLetter() *letter {
	at := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	a := alerts.Alert{Rule: "backup", About: "agg1", Severity: "warning", What: "the backup of agg1 fails", Do: "df -h", Runbook: "https://example.org/", Since: at, Fired: at}
	over := a
	over.Ended = at.Add(time.Hour)
	return &letter{
		Action: "alert/sample", Zone: "UTC", URL: "https://bursar.example.org/ui/alerts", Firing: 1, Recovered: 1,
		Changes: []item{{Alert: a, At: at}, {Alert: over, At: over.Ended, Recovered: true}},
	}
}

// written is a letter as text.
type written struct{ subject, text string }

// renderLetter writes a letter.
func (t templates) renderLetter(l *letter) (written, error) {
	var subject, text strings.Builder
	err := errors.Join(t[subjectTemplate].Execute(&subject, l), t[textTemplate].Execute(&text, l))
	return written{strings.Join(strings.Fields(subject.String()), " "), text.String()}, err
}
