package cli

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/setup"
)

// demoFiles are the configuration of the demo, as a site would write it.
//
//go:embed demo
var demoFiles embed.FS

// demoSource is the file of the demo that is for the agent, demoActions the one that needs
// the plugin action-report.
const (
	demoSource  = "source.hcl"
	demoActions = "actions.hcl"
)

// writeDemo writes the files of the demo, but those named in without, into the folder demo
// of dir, and returns the configuration files among them, by whose they are. A file that is
// there stays as it is: its dates are those of the history that was recorded then.
func writeDemo(dir string, now time.Time, without ...string) (out own, err error) {
	const day = 24 * time.Hour
	site := filepath.Join(dir, "site")
	date := func(d time.Duration) string { return now.Add(d).UTC().Format(time.DateOnly) }
	fill := strings.NewReplacer(
		"@BEGIN@", date(-28*day), "@END@", date(28*day), // half of the budgets' time is over
		"@JOINED@", date(-14*day),
		"@FAILED@", date(-9*day), // of which the source replay misses jobs
		`"@SITE@"`, setup.Quote(site),
	)
	to := filepath.Join(dir, "demo")
	if err := errors.Join(os.MkdirAll(to, 0o750), os.MkdirAll(site, 0o750)); err != nil {
		return out, err
	}
	entries, err := demoFiles.ReadDir("demo")
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		if slices.Contains(without, e.Name()) {
			continue
		}
		text, err := demoFiles.ReadFile("demo/" + e.Name())
		if err != nil {
			return out, err
		}
		path := filepath.Join(to, e.Name())
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, []byte(fill.Replace(string(text))), 0o600); err != nil {
				return out, err
			}
		}
		switch {
		case e.Name() == demoSource:
			out.agent = append(out.agent, path)
		case filepath.Ext(path) == ".hcl":
			out.aggregator = append(out.aggregator, path)
		}
	}
	return out, nil
}
