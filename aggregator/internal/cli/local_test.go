package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCertificatesThatAreMadeAreWhoTheyShouldBe(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"tls", "ca", "create", "-dir", dir},
		{"tls", "cert", "create", "-ca-dir", dir, "-dir", dir, "-role", "agent", "-name", "head1", "-host", "head1.example.org", "-host", "10.0.0.1"},
	} {
		if code, out, errs := (shell{}).bursar(t.Context(), args...); code != 0 || out != "" {
			t.Fatal(args, code, errs)
		}
	}
	keys, err := identity.Load(identity.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "head1.pem"), Key: filepath.Join(dir, "head1.key")})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := keys.Identity(); err != nil || id != (identity.Identity{Role: identity.Agent, Name: "head1"}) {
		t.Error(id, err)
	}
	if code, _, errs := (shell{}).bursar(t.Context(), "tls", "ca", "create", "-dir", dir); code != 1 || !strings.Contains(errs, "exists") {
		t.Error("an authority was replaced", code, errs)
	}
}

const ugly = "aggregator {\nname=\"a\"\n  data_dir = \"/d\"\n}\n"

func TestFmtLaysOutAndCheckOnlySays(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "a.hcl", ugly)
	if code, out, _ := (shell{}).bursar(t.Context(), "config", "fmt", "-check", dir); code != 2 || out != path+"\n" {
		t.Error(code, out)
	}
	if code, out, _ := (shell{}).bursar(t.Context(), "config", "fmt", dir); code != 0 || out != path+"\n" {
		t.Error(code, out)
	}
	text, err := os.ReadFile(path)
	if want := "aggregator {\n  name     = \"a\"\n  data_dir = \"/d\"\n}\n"; err != nil || string(text) != want {
		t.Errorf("%q", text)
	}
	if code, out, _ := (shell{}).bursar(t.Context(), "config", "fmt", "-check", path); code != 0 || out != "" {
		t.Error(code, out)
	}
	if _, out, _ := (shell{stdin: ugly}).bursar(t.Context(), "config", "fmt", "-"); out != string(text) {
		t.Error(out)
	}
	broken := write(t, dir, "b.hcl", "aggregator {")
	if code, _, errs := (shell{}).bursar(t.Context(), "config", "fmt", broken); code != 1 || !strings.Contains(errs, "b.hcl line 1") {
		t.Error(code, errs)
	}
}

func TestValidateShowsEveryProblemWithItsLine(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, dir, "bad.hcl", "aggregator {\n  nme = \"a\"\n  api { listen = [\"0.0.0.0:1\"] }\n}\n")
	code, out, errs := (shell{}).bursar(t.Context(), "config", "validate", bad)
	if code != 1 || out != "" || !strings.Contains(errs, "bad.hcl line 2, in aggregator:\n   2:   nme = \"a\"\n") || !strings.Contains(errs, "bad.hcl line 3,") {
		t.Error(code, out, errs)
	}
	good := write(t, dir, "good.hcl", "aggregator {\n  name = \"a\"\n  data_dir = \"/d\"\n  api { listen = [\"127.0.0.1:0\"] }\n}\n") // another program may have the usual port
	if code, _, errs := (shell{}).bursar(t.Context(), "config", "validate", good); code != 0 {
		t.Error(errs)
	}
	if code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-config", good, "-check"); code != 0 {
		t.Error(errs)
	}
}

func TestCheck_TakenPortAndUnusableFolder_AreErrorsUnlessTheDaemonRuns(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	write(t, dir, "file", "")
	for _, c := range []struct{ data, listen, want string }{
		{"data", l.Addr().String(), "another process listens on " + l.Addr().String()}, {"file", "127.0.0.1:0", "not a folder"}, {"file/a/b", "127.0.0.1:0", "not a folder"}, {"data/a/b", "127.0.0.1:0", ""},
	} {
		path := write(t, dir, "a.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = %q\n  api { listen = [%q] }\n}\n", c.data, c.listen))
		code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-config", path, "-check")
		if (code == 1) != (c.want != "") || !strings.Contains(errs, c.want) {
			t.Errorf("%+v: %d %s", c, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Error("the check made the folder:", err)
	}
	s, _ := aggregatorWith(t, "")
	own := filepath.Dir(filepath.Dir(strings.TrimPrefix(s.env["BURSAR_ADDR"], "unix:")))
	if code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-config", filepath.Join(own, "a.hcl"), "-check"); code != 0 || strings.Contains(errs, "another process") {
		t.Errorf("beside the daemon: %d %s", code, errs)
	}
}

func TestACheckSaysWhatToDoAboutEachMistake(t *testing.T) {
	const node = "aggregator {\n  name     = \"agg1\"\n  data_dir = \"/d\"\n}\n"
	var all strings.Builder
	for _, c := range []struct{ name, text string }{
		{"a quote that is not closed", "aggregator {\n  name = \"agg1\n  data_dir = \"/d\"\n}\naction \"exec\" \"a\" {}\n"},
		{"no value", "aggregator {\n  name = \"agg1\"\n  tls { ca = }\n}\naction \"exec\" \"a\" {}\n"},
		{"certificates that are not named", "aggregator {\n  name     = \"agg1\"\n  data_dir = \"/d\"\n  tls {\n    ca = null\n  }\n}\n"},
		{"a setting of the plugin beside config", node + "action \"exec\" \"a\" {\n  command = [\"/bin/true\"]\n  schedul = \"@daily\"\n  usage {\n  }\n  config {\n  }\n}\n"},
		{"a label that is missing", node + "action \"exec\" {\n  config {\n  }\n}\nagent { address = \"a:7070\" }\nproject {}\n"},
		{"a name that is unknown", node + "zzzz \"x\" {}\nqqqq = 1\n"},
		{"a warning before an error", "aggregator {\n  name     = \"agg1\"\n  data_dir = \"/d\"\n  raft { listen = \"127.0.0.1:8701\" }\n  api { max_bdy = \"1GiB\" }\n}\n"},
		{"what belongs into the block aggregator", node + "api { listen = [\"127.0.0.1:8000\"] }\ndata_dri = \"/d\"\nbackup {}\n"},
		{"an empty file", "\n"},
		{"a wrong type", node + "agent \"a1\" { address = [] }\nperson \"p\" { groups = \"g\" }\n"},
		{"what is missing in a block", node + "contribution \"c\" {}\nbudget \"b\" { amount = 1 }\n"},
		{"values out of the allowed ones", node + "access {\n  client \"c\" { roles = [\"admn\"] }\n}\naction \"Exec\" \"a b\" {\n  schedule = \"hourly\"\n  zone     = \"Europe/Belin\"\n}\n"},
		{"files that are missing", "aggregator {\n  name     = \"agg1\"\n  data_dir = \"/d\"\n  log { level = file(\"/nowhere/level\") }\n}\ndirectory { files = [\"/\"] }\n"},
		{"an unknown function", "aggregator {\n  name     = fil(\"name\")\n  data_dir = \"/d\"\n}\n"},
	} {
		dir := t.TempDir()
		path := write(t, dir, "aggregator.hcl", c.text)
		code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-config", path, "-check")
		fmt.Fprintf(&all, "# %s => %d\n%s\n", c.name, code, strings.ReplaceAll(errs, dir+"/", ""))
		if strings.Contains(c.text, "file(") {
			continue // which offline reads nothing
		}
		if again, _, offline := (shell{}).bursar(t.Context(), "config", "validate", path); again != code || offline != errs {
			t.Errorf("%s: config validate ends with %d and says\n%s", c.name, again, offline)
		}
	}
	golden(t, "check-mistakes.txt", all.String())
}

// lines is a log that may be read while it is written.
type lines struct {
	got chan string
}

func (l *lines) Write(p []byte) (int, error) {
	select {
	case l.got <- string(p):
	default:
	}
	return len(p), nil
}

// await waits for a line with that text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case line := <-l.got:
			if strings.Contains(line, text) {
				return
			}
		case <-t.Context().Done():
			t.Fatal("no", text)
		case <-time.After(time.Minute):
			t.Fatal("no ", text)
		}
	}
}

func TestTheDaemonServesReloadsAndStopsInOrder(t *testing.T) {
	dir := t.TempDir()
	at := porttest.Free(t)
	text := fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api { listen = [%q] }\n}\naccess { plain_role = \"write\" }\n", at)
	path := write(t, dir, "a.hcl", text)
	hangup := make(chan os.Signal)
	log := &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1", Hangup: hangup}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-config", path}) }()
	log.await(t, "this node leads")

	s := shell{sockets: []string{filepath.Join(dir, "none"), filepath.Join(dir, "data", "api.sock")}}
	body := strings.NewReader(`{"record_id":"r1","meta":{"user_id":["alice"]},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-02T03:04:05Z"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/record", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	for _, line := range []string{"records -where user_id=alice", "records -since 2026-01-01 -format csv", "records -ended -format json", "records -sort runtime -limit -1"} {
		if code, out, errs := s.bursar(t.Context(), strings.Fields(line)...); code != 0 || strings.Count(out, "r1") != 1 {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
	for _, line := range []string{"records -open", "status", "agents", "conflicts", "quarantine list", "quarantine drop -all"} {
		if code, _, errs := s.bursar(t.Context(), strings.Fields(line)...); code != 0 {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}

	write(t, dir, "a.hcl", "aggregator {")
	hangup <- os.Interrupt
	log.await(t, "the old one stays")
	write(t, dir, "a.hcl", strings.Replace(text, at, "127.0.0.1:1", 1))
	hangup <- os.Interrupt
	log.await(t, "setting=api.listen")
	log.await(t, "configuration reloaded")

	if code, _, errs := s.bursar(t.Context(), "operator", "check", "-data-dir", filepath.Join(dir, "data")); code != 1 || !strings.Contains(errs, "does the aggregator run?") {
		t.Error("a store in use was opened", code, errs)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Error("exit code", code)
	}
	if code, _, errs := s.bursar(t.Context(), "operator", "check", "-config", write(t, dir, "a.hcl", text)); code != 0 || !strings.Contains(errs, "sound: 1 records") {
		t.Error(code, errs)
	}
}

func TestADaemonThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := write(t, dir, "busy.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  api { listen = [%q] }\n}\n", taken.Addr()))
	bad := write(t, dir, "bad.hcl", "aggregator {\n  nam = 1\n}\n")
	for path, want := range map[string]struct {
		code int
		text string
	}{busy: {1, "busy.hcl:4: listen tcp"}, bad: {78, "bad.hcl line 2, in aggregator"}, filepath.Join(dir, "none"): {78, "does not exist"}} {
		if code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-config", path); code != want.code || !strings.Contains(errs, want.text) {
			t.Errorf("%s: %d %s", path, code, errs)
		}
	}
}

func TestATLSListenerTakesOnlyClientsWithACertificate(t *testing.T) {
	dir := t.TempDir()
	must := func(args ...string) {
		t.Helper()
		if code, _, errs := (shell{now: time.Now}).bursar(t.Context(), args...); code != 0 {
			t.Fatal(args, errs)
		}
	}
	must("tls", "ca", "create", "-dir", dir)
	must("tls", "cert", "create", "-ca-dir", dir, "-dir", dir, "-role", "aggregator", "-name", "a", "-host", "127.0.0.1")
	must("tls", "cert", "create", "-ca-dir", dir, "-dir", dir, "-role", "client", "-name", "alice", "-roles", "read")
	at := porttest.Free(t)
	path := write(t, dir, "a.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api {\n    listen = []\n    tls_listen = [%q]\n  }\n  tls {\n    ca = \"ca.pem\"\n    cert = \"a.pem\"\n    key = \"a.key\"\n  }\n}\n", at))
	log := &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-config", path}) }()
	log.await(t, "this node leads")
	ca := filepath.Join(dir, "ca.pem")
	s := shell{env: map[string]string{
		"BURSAR_ADDR": "https://" + at, "BURSAR_CACERT": ca,
		"BURSAR_CLIENT_CERT": filepath.Join(dir, "alice.pem"), "BURSAR_CLIENT_KEY": filepath.Join(dir, "alice.key"),
	}}
	if code, out, errs := s.bursar(t.Context(), "status"); code != 0 || !strings.Contains(out, "records") {
		t.Error(code, out, errs)
	}
	if code, out, _ := (shell{}).bursar(t.Context(), "status", "-address", "https://"+at, "-ca-cert", ca); code != 1 || out != "" {
		t.Error("a client without a certificate was served", out)
	}
	if code, out, _ := (shell{}).bursar(t.Context(), "status", "-address", "http://"+at); code != 1 || out != "" {
		t.Error("a client without TLS was served", out)
	}
	_, port, _ := net.SplitHostPort(at)
	for line, want := range map[string]string{
		"status -address https://" + at: "Type:  bursar status -ca-cert FILE   # or BURSAR_CACERT", "status -address https://localhost:" + port + " -ca-cert " + ca: "another name",
	} {
		if code, _, errs := (shell{}).bursar(t.Context(), strings.Fields(line)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Error("exit code", code)
	}
}

func TestValidateKnowsTheConfigurationOfAnAgent(t *testing.T) {
	path := write(t, t.TempDir(), "agent.hcl", "agent {\n  name = \"head1\"\n}\nsource \"slurm\" \"nemo\" {}\n")
	if code, _, errs := (shell{}).bursar(t.Context(), "config", "validate", path); code != 1 || !strings.Contains(errs, "bursar-agent -config FILE -check") {
		t.Error(code, errs)
	}
}
