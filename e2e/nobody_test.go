//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// attempt is what a local user tries; Answer is what came of it.
type attempt struct {
	Method, URL, Socket string
	Headers             map[string]string
	Answer              string
}

// attempts is a program that tries a list of attempts and prints the answers: the status,
// or the name of what went wrong.
const attempts = `
import json, socket, sys, urllib.error, urllib.request
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
ask = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}))
out = []
for a in json.load(sys.stdin):
    try:
        if a["Socket"]:
            s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(a["Socket"])
            s.sendall(b"GET /health_check HTTP/1.1\r\nHost: localhost\r\n\r\n"); out.append("answered" if s.recv(1) else "closed"); s.close(); continue
        body = b"{}" if a["Method"] not in ("GET", "HEAD", "DELETE") else None
        r = urllib.request.Request(a["URL"], data=body, method=a["Method"], headers=dict({"Content-Type": "application/json"}, **(a["Headers"] or {})))
        out.append(str(ask.open(r, timeout=10).status))
    except urllib.error.HTTPError as e: out.append(str(e.code))
    except Exception as e: out.append(type(e).__name__)
json.dump(out, sys.stdout)
`

// no one runs the attempts as a user of this machine without any rights.
func nobody(t *testing.T, list []attempt) []attempt {
	t.Helper()
	input, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", attempts)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "/", strings.NewReader(string(input)), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(list) {
		t.Fatal(err, string(out))
	}
	for i := range list {
		list[i].Answer = answers[i]
	}
	return list
}

// routes are the methods and paths of the node, as its own description has them.
func routes(t *testing.T, g *site.Aggregator) (list [][2]string) {
	t.Helper()
	resp, err := site.Local(g.DataDir).Get("http://localhost/v1/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	path := ""
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`^  (/\S*):\s*$`).FindStringSubmatch(line); m != nil {
			path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(m[1], "x")
		}
		if m := regexp.MustCompile(`^    (get|put|post|delete):\s*$`).FindStringSubmatch(line); m != nil && path != "" {
			list = append(list, [2]string{strings.ToUpper(m[1]), path})
		}
	}
	for _, page := range []string{"/", "/ui/", "/ui/usage", "/ui/records", "/ui/reports", "/ui/agents", "/ui/actions", "/ui/alerts", "/ui/cluster", "/ui/login?token=x", "/metrics", "/debug/pprof/"} {
		list = append(list, [2]string{"GET", page})
	}
	if len(list) < 40 {
		t.Fatalf("only %d routes are described", len(list))
	}
	return list
}

// TestLocalUser_EveryRouteAndSocket_GetsHealthAndTheLoginPage: a local user, and a page of
// another site in a browser of this machine, get nothing else from a node and an agent that
// are configured as they are installed.
func TestLocalUser_EveryRouteAndSocket_GetsHealthAndTheLoginPage(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	for dir := s.Dir; dir != "/"; dir = filepath.Dir(dir) { // the sockets keep the user out, not the folders above
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, info.Mode()|0o711); err != nil {
			t.Fatal(err)
		}
	}
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: fmt.Sprintf("source \"receiver\" \"push\" {\n  config { socket = %q }\n}\n", filepath.Join(s.Dir, "receiver.sock"))})
	g := s.Aggregator(agent)
	config, err := os.ReadFile(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	s.Write(filepath.Base(g.Config), regexp.MustCompile(`access \{[^}]*\}`).ReplaceAllString(string(config), ""))
	agent.Start()
	g.Start()
	g.AwaitReady()
	s.Eventually("the agent is pulled", func() (bool, string) {
		status, err := agent.Status()
		return err == nil && len(status.Sources) == 1, fmt.Sprint(status, err)
	})

	tries := []attempt{{Method: "GET", URL: g.URL + "/health_check"}}
	for _, r := range routes(t, g) {
		for _, headers := range []map[string]string{nil, {"Host": "evil.example", "Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}} {
			if r[1] != "/health_check" {
				tries = append(tries, attempt{Method: r[0], URL: g.URL + r[1], Headers: headers})
			}
		}
	}
	for _, path := range []string{filepath.Join(g.DataDir, "api.sock"), filepath.Join(agent.DataDir, "agent.sock"), filepath.Join(s.Dir, "receiver.sock")} {
		tries = append(tries, attempt{Socket: path})
	}
	for i, a := range nobody(t, tries) {
		switch {
		case i == 0 && a.Answer != "200":
			t.Errorf("health: %s", a.Answer)
		case a.Socket != "" && a.Answer != "PermissionError" && a.Answer != "closed" && a.Answer != "ConnectionResetError" && a.Answer != "BrokenPipeError":
			t.Errorf("the socket %s: %s", a.Socket, a.Answer)
		case a.Method == "GET" && a.URL == g.URL+"/ui/login" && a.Headers["Host"] == "":
			if a.Answer != "200" {
				t.Errorf("the page to log in: %s", a.Answer)
			}
		case i > 0 && a.Socket == "" && !refused(a.Answer):
			t.Errorf("%s %s %v: %s", a.Method, a.URL, a.Headers, a.Answer)
		}
	}
}

// refused reports whether an answer gives nothing away and has done nothing: a refusal,
// a route that there is not, a used link, or a connection that was broken off.
func refused(answer string) bool {
	switch answer {
	case "401", "403", "421", "410", "RemoteDisconnected", "ConnectionResetError", "URLError":
		return true
	}
	return false
}
