//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Each example configuration of another system becomes HCL that the daemons take, with
// their plugins.
func TestConfigConvert_Examples_PassCheck(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	keys := s.Cert(identity.Aggregator, "agg1")
	here := strings.NewReplacer("/etc/auditor/rootCA.pem", keys.CA, "/etc/auditor/server-cert.pem", keys.Cert, "/etc/auditor/server-key.pem", keys.Key,
		"/etc/grid-security/hostcert.pem", keys.Cert, "/etc/grid-security/hostkey.pem", keys.Key, `"c.pem"`, `"`+keys.Cert+`"`, `"k.pem"`, `"`+keys.Key+`"`, "/etc/bursar/mail.password", s.Write("mail.password", "secret\n"))
	examples := filepath.Join(site.Top(), "aggregator/internal/convert/testdata")
	files, _ := filepath.Glob(filepath.Join(examples, "*.yml"))
	checked := 0
	for _, group := range append(files, filepath.Join(examples, "ai4", "*"), filepath.Join(examples, "accountant", "*")) {
		inputs, _ := filepath.Glob(group)
		dir := t.TempDir()
		if out, err := s.Run("bursar", append([]string{"config", "convert", "-o", dir}, inputs...)...); err != nil {
			t.Error(group, out, err)
			continue
		}
		for name, args := range map[string][]string{"agent.hcl": {"bursar-agent", "-check", "-dev"}, "aggregator.hcl": {"bursar", "aggregator", "-check", "-dev"}} {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			if err := os.WriteFile(path, []byte(here.Replace(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := s.Run(args[0], append(args[1:], "-config", path)...); err != nil {
				t.Error(filepath.Base(group), name, out, err)
			}
			checked++
		}
	}
	if checked < 15 {
		t.Error("only", checked)
	}
}

// converted are the blocks that bursar config convert makes of files, behind that of the
// aggregator.
func converted(t *testing.T, s *site.Site, pattern string) string {
	t.Helper()
	inputs, _ := filepath.Glob(pattern)
	out, err := s.Run("bursar", append([]string{"config", "convert"}, inputs...)...)
	if err != nil {
		t.Fatal(out, err)
	}
	_, blocks, _ := strings.Cut(out, "\n}\n")
	return blocks
}

// commands are the lines of a page that call bursar, as words.
func commands(t *testing.T, page string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), page))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "  #")
		line = strings.ReplaceAll(line, "'", "")
		if words := strings.Fields(line); len(words) > 1 && words[0] == "bursar" {
			all = append(all, words[1:])
		}
	}
	return all
}

// The commands of the pages for those who move from another system do what they say, on
// what such a system leaves.
func TestMoving_CommandsOfThePages_Work(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	old := s.Node(site.NodeSpec{Name: "auditor"})
	agg := s.Aggregator()
	agg.Add(converted(t, s, filepath.Join(site.Top(), "aggregator/internal/convert/testdata/accountant/*")))
	old.Start()
	agg.Start()
	old.AwaitReady()
	agg.AwaitReady()
	const group = `,"group_id":["g"]`
	old.Post("/record", openRecord("slurm-1", group))
	old.Post("/record", strings.Replace(openRecord("slurm-2", group), `"start_time"`, `"stop_time":"2024-02-24T01:00:00Z","start_time"`, 1))
	examples := filepath.Join(site.Top(), "aggregator/internal/convert/testdata")
	engine := filepath.Join(site.Top(), "aggregator/internal/accounting/testdata/gridengine")
	actions := filepath.Join(s.Dir, "actions")
	for page, replace := range map[string][]string{
		"plugins/source/auditor/MOVING.md": {"/etc/auditor/*.yml", filepath.Join(examples, "slurm-all.yml"), "postgres://reader@db.example.org/auditor", old.URL, "http://auditor.example.org:8000", old.URL, "march.html", filepath.Join(s.Dir, "march.html"), "/srv/auditor-archive/*.parquet", ""},
		"plugins/source/ai4/MOVING.md": {"conf.py", examples + "/ai4/conf.py", "snapshots/take_snapshot.sh", examples + "/ai4/take_snapshot.sh", "users/user-db.json", examples + "/ai4/user-db.json",
			"/srv/ai4-accounting/snapshots", filepath.Join(site.Top(), "plugins/source/ai4/testdata/snapshots"), "/srv/ai4-accounting", actions},
		"plugins/source/gridengine/MOVING.md": {"/etc/security/access.conf", examples + "/accountant/access.conf", "tables.sql", engine + "/tables.sql", "/backup/accounting.*", engine + "/accounting", "accounting", engine + "/accounting"},
	} {
		if err := os.MkdirAll(actions, 0o700); err != nil {
			t.Fatal(err)
		}
		etc, ran := t.TempDir(), 0
		for _, words := range commands(t, page) {
			var args []string
			for i, w := range words {
				for at := 0; at < len(replace); at += 2 {
					if w == replace[at] {
						w = replace[at+1]
						break
					}
				}
				if w = strings.ReplaceAll(w, "/etc/bursar", etc); w != "" {
					args = append(args, w)
				}
				if i == 0 && w == "import" {
					args = append(args, "-dev", "-plugin-dir", filepath.Join(s.Bin, "plugins"))
				}
			}
			if args[0] == "aggregator" || args[0] == "actions" { // for its machine; there are no actions here
				continue
			}
			// 2 is success with findings, such as groups of no project.
			if out, err := agg.Bursar(args...); err != nil && !strings.Contains(err.Error(), "exit status 2") {
				t.Errorf("%s: bursar %s: %v\n%s", page, strings.Join(args, " "), err, out)
			}
			ran++
		}
		if ran < 4 {
			t.Errorf("%s: only %d commands", page, ran)
		}
	}
	if got := agg.ByID(); len(got) < 30 {
		t.Error(len(got), "records")
	}
}
