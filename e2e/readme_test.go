//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// demo is a running `bursar dev` whose commands and pages are looked at.
type demo struct {
	*site.Demo

	t *testing.T
}

// readmeCommands returns the commands of README's code blocks that are for the demo. The
// word behind the fence says what a block has: sh are commands, console are commands behind
// "$ " with what they print; with not-in-demo they need a site of one's own.
func readmeCommands(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"sh", "sh not-in-demo", "console", "console not-in-demo", "hcl", "text"}
	kind, inside := "", false
	for i, line := range strings.Split(string(text), "\n") {
		if word, fence := strings.CutPrefix(line, "```"); fence {
			if inside = !inside; !inside {
				continue
			}
			if kind = word; !slices.Contains(kinds, kind) {
				t.Errorf("README.md:%d: unknown kind of code block %q: use one of %s", i+1, kind, strings.Join(kinds, ", "))
			}
			continue
		}
		command, prompted := strings.CutPrefix(line, "$ ")
		if inside && strings.TrimSpace(line) != "" && (kind == "sh" || kind == "console" && prompted) {
			commands = append(commands, command)
		}
	}
	return commands
}

func TestReadme_CommandsInTheDemo_ExitWithZero(t *testing.T) {
	t.Parallel()
	commands := readmeCommands(t)
	if len(commands) < 30 {
		t.Errorf("README has only %d commands for the demo: %q", len(commands), commands)
	}
	d := &demo{site.New(t).Demo(), t}
	for _, command := range commands {
		if out, err := d.Run(command); err != nil || strings.TrimSpace(out) == "" && !strings.ContainsAny(command, ">") && !strings.Contains(command, " -o ") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	d.showsContent()
	d.showsPages()
}

// showsContent checks that what the demo promises is there, or comes.
func (d *demo) showsContent() {
	d.t.Helper()
	if out, err := d.Run("bursar actions run report/demo"); err != nil { // that of the start may have met few records
		d.t.Errorf("%v\n%s", err, out)
	}
	for _, c := range []struct{ command, want string }{
		{"bursar status", `(?s)^Healthy.*3 quarantined`},
		{"bursar quarantine list", `validation .*is below zero`},
		{"bursar gaps", `replay/recorded .*demo: the log was rotated`},
		{"bursar completeness", `missing runs +\d+ +\d+ +0 +0 +0 +3`},
		{"bursar budgets", `(?m)^arctic-ice .* −[0-9]`},
		{"bursar budgets", `(?m)^higgs .* EUR +30\S*000.00 .*lasts$`},
		{"bursar budgets", `(?m)^wheat-genome .* 20\d\d-\d\d-\d\d$`},
		{"bursar prices -at 2025", `Cores +0.01 +EUR +core-hour `},
		{"bursar prices", `0.006 +EUR +\S+ +partition=opportunistic`},
		{"bursar directory", `higgs +at00 +Ada Atlas +atlas,cms`},
		{"bursar subscription -window 30d", `at00 +Ada Atlas +[1-9]`},
		{"bursar usage -window last-month -by project -measure cost,su,energy,co2,utilization", `higgs( +[1-9]\S*){5}`},
		{"bursar census", `at00 +[1-9]`},
		{"bursar actions list", `report/demo +healthy .* (1 done|nothing to do)`},
		{"grep -c '<table' */site/*.html ../bursar-dev-*/site/*.html ../bursar-dev-*/site/*/*.html", `:[1-9]`},
	} {
		want := regexp.MustCompile(c.want)
		site.Eventually(d.t, fmt.Sprintf("%s prints %s", c.command, c.want), func() (bool, string) {
			out, _ := d.Run(c.command)
			return want.MatchString(out), out
		})
	}
}

// showsPages opens each page that the first one leads to, within two links.
func (d *demo) showsPages() {
	d.t.Helper()
	link, base := d.Login()
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	leads := regexp.MustCompile(`href="(/[a-z/-]*)"`)
	seen := map[string]bool{}
	next := []string{strings.TrimPrefix(link, base)}
	for range 3 {
		open := next
		next = nil
		for _, path := range open {
			page := d.openPage(browser, base+path)
			for _, found := range leads.FindAllStringSubmatch(page, -1) {
				if to := found[1]; !seen[to] && !strings.HasPrefix(to, "/ui/static") && !strings.HasPrefix(to, "/ui/log") {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
	}
	for _, path := range []string{"/ui/usage", "/ui/reports", "/ui/budgets", "/ui/actions", "/ui/records", "/ui/agents", "/ui/centre"} {
		if !seen[path] {
			d.t.Errorf("no page leads to %s; those that are: %v", path, seen)
		}
	}
}

// openPage returns what an address answers with 200; a node that is busy is asked again.
func (d *demo) openPage(client *http.Client, url string) (page string) {
	d.t.Helper()
	status := 0
	site.Eventually(d.t, url+" answers", func() (bool, string) {
		resp, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		body, err := io.ReadAll(resp.Body)
		page, status = string(body), resp.StatusCode
		return errors.Join(err, resp.Body.Close()) == nil && status != http.StatusServiceUnavailable, page
	})
	if status != http.StatusOK {
		d.t.Errorf("%s: %d\n%s", url, status, page)
	}
	return page
}
