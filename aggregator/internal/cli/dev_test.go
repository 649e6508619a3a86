package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/programtest"
)

// programs are built once for all tests of the package.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bursar-test-bin-")
	if err != nil {
		return "", err
	}
	return dir, programtest.Build(dir, map[string]string{"bursar": "aggregator", "bursar-agent": "agent", "plugins/bursar-source-replay": "plugins/source/replay", "plugins/bursar-action-exec": "plugins/action/exec"})
})

// dev is a running `bursar dev`.
type dev struct {
	t        *testing.T
	browser  *http.Client
	bin, tmp string
	cmd      *exec.Cmd
	out, err *output
	ended    chan error
}

// output is what a process has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start starts `bursar dev` where no scheduler can be found.
func start(t *testing.T, args ...string) *dev {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &dev{t: t, browser: &http.Client{Jar: jar}, bin: bin, tmp: t.TempDir(), out: &output{}, err: &output{}, ended: make(chan error, 1)}
	d.cmd = exec.Command(filepath.Join(bin, "bursar"), append([]string{"dev", "-listen", "127.0.0.1:0"}, args...)...)
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.tmp, "XDG_RUNTIME_DIR="+d.tmp, "PATH="+t.TempDir())
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.err
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.ended <- d.cmd.Wait() }()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		for _, pid := range d.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return d
}

// until waits for a condition.
func (d *dev) until(what string, holds func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("%s did not come\nstdout:\n%s\nstderr:\n%s", what, d.out, d.err)
		}
	}
}

var pagesAt = regexp.MustCompile(`Pages +((http://[^/]+)/\S+)`)

// address waits for the welcome, opens its link, and returns where the pages are.
func (d *dev) address() string {
	d.t.Helper()
	d.until("the welcome", func() bool { return strings.Contains(d.out.String(), "Ctrl-C stops") })
	found := pagesAt.FindStringSubmatch(d.out.String())
	if page := d.get(found[1]); !strings.Contains(page, "<title>Overview") {
		d.t.Fatalf("the link opens %s", page)
	}
	return found[2]
}

// get reads a page; "" when it is not there yet.
func (d *dev) get(url string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := d.browser.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// processes are the processes that live of the programs that were built for these
// tests.
func (d *dev) processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.HasPrefix(string(line), d.bin) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// nothingLeft fails when a process or a file of the run is left.
func (d *dev) nothingLeft() {
	d.t.Helper()
	if left := d.processes(); len(left) > 0 {
		d.t.Errorf("processes are left: %v", left)
	}
	if files, _ := filepath.Glob(filepath.Join(d.tmp, "*")); len(files) > 0 {
		d.t.Errorf("files are left: %v", files)
	}
}

func TestDevShowsRecordsAndLeavesNothingBehind(t *testing.T) {
	d := start(t)
	at := d.address()
	d.until("a record", func() bool { return strings.Contains(d.get(at+"/v1/records?limit=1"), "recorded-") })
	d.until("the page with records", func() bool { return strings.Contains(d.get(at+"/ui/records"), ">recorded-") })
	d.until("the whole history", func() bool {
		var s struct {
			Records int `json:"records"`
		}
		return json.Unmarshal([]byte(d.get(at+"/v1/status")), &s) == nil && s.Records > 19000
	})
	if len(d.processes()) < 4 {
		t.Errorf("only %d processes run", len(d.processes()))
	}
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-d.ended; err != nil {
		t.Errorf("%v\n%s", err, d.err)
	}
	d.nothingLeft()
	// What is wrong in the demo on purpose is not told. The disk is that of the machine.
	expected := regexp.MustCompile(` msg=finding id=disk-\w+ | msg="the disk is (filling up|nearly full)`)
	for line := range strings.Lines(d.err.String()) {
		if !expected.MatchString(line) {
			t.Errorf("stderr: %s", line)
		}
	}
}

// child returns the process of that name.
func (d *dev) child(name string) int {
	d.t.Helper()
	for _, pid := range d.processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), "\x00"+name+"\x00") || strings.HasSuffix(strings.SplitN(string(line), "\x00", 2)[0], "/"+name) {
			return pid
		}
	}
	d.t.Fatalf("no process %s", name)
	return 0
}

func TestACrashOfADaemonIsTold(t *testing.T) {
	d := start(t, "-empty")
	d.address()
	if err := syscall.Kill(d.child("bursar-agent"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-d.ended; err == nil {
		t.Error("exit code 0")
	}
	if got := d.err.String(); !strings.Contains(got, "the agent ended by itself: signal: killed; its last lines:\n") {
		t.Errorf("stderr: %s", got)
	}
	d.nothingLeft()
}

func TestTheDaemonsEndWithDevWhateverEndsIt(t *testing.T) {
	d := start(t)
	d.address()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.until("the end of all processes", func() bool { return len(d.processes()) == 0 })
}

func TestAFolderIsKeptAndUsedAgain(t *testing.T) {
	data := t.TempDir()
	sources := t.TempDir()
	text := "source \"replay\" \"mine\" {\n  interval = \"1s\"\n  config {\n    recorded = true\n    jobs = 50\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(sources, "mine.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d := start(t, "-data-dir", data, "-config", sources)
		at := d.address()
		d.until("a record", func() bool { return strings.Contains(d.get(at+"/v1/records"), "mine-") })
		if strings.Contains(d.get(at+"/v1/records?limit=1000"), "recorded-") {
			t.Error("the recorded cluster runs beside one's own sources")
		}
		if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := <-d.ended; err != nil {
			t.Errorf("%v\n%s", err, d.err)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "log", "agent.log")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoSourceIsTheAggregators(t *testing.T) {
	own := t.TempDir()
	done := filepath.Join(t.TempDir(), "done")
	text := "action \"exec\" \"touch\" {\n  schedule = \"1s\"\n  config {\n    command = [\"/usr/bin/touch\", \"" + done + "\"]\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(own, "touch.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, "-config", own)
	at := d.address()
	d.until("what the action does", func() bool { _, err := os.Stat(done); return err == nil })
	d.until("the recorded cluster beside it", func() bool { return strings.Contains(d.get(at+"/v1/records?limit=1"), "recorded-") })
}

func TestAFileOfTwoDaemonsIsAnErrorThatNamesBoth(t *testing.T) {
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, "both.hcl"), []byte("source \"replay\" \"a\" {}\naction \"exec\" \"b\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, "-config", own)
	if err := <-d.ended; err == nil || !strings.Contains(d.err.String(), `a block "source" is for the agent and a block "action" for the aggregator`) {
		t.Errorf("%v %s", err, d.err)
	}
}

func TestATakenAddressIsAnErrorWhenItWasChosen(t *testing.T) {
	first := start(t, "-empty")
	at := strings.TrimPrefix(first.address(), "http://")
	second := start(t, "-empty", "-listen", at)
	if err := <-second.ended; err == nil || !strings.Contains(second.err.String(), "-listen chooses another address") {
		t.Errorf("%v %s", err, second.err)
	}
	if files, _ := filepath.Glob(filepath.Join(second.tmp, "*")); len(files) > 0 {
		t.Errorf("files are left: %v", files)
	}
}

// bursar calls the command line as the user of the run would, in another terminal.
func (d *dev) bursar(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(d.bin, "bursar"), args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+d.tmp)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheLinkOpensOneBrowserAndTheCommandLineFindsTheRunByItself(t *testing.T) {
	d := start(t, "-empty")
	at := d.address()
	link := pagesAt.FindStringSubmatch(d.out.String())[1]
	stranger := &dev{t: t, browser: &http.Client{}}
	for path, want := range map[string]string{
		link: "was used already", at + "/": "bursar login", at + "/v1/records": "bursar login", at + "/health_check": "",
	} {
		if got := stranger.get(path); !strings.Contains(got, want) || strings.Contains(got, "<title>") {
			t.Errorf("%s without a session: %s", path, got)
		}
	}
	for _, command := range []string{"status", "records", "config diff", "actions list"} {
		if out, err := d.bursar(strings.Fields(command)...); err != nil && !strings.Contains(out, "aggregator.hcl") {
			t.Errorf("%s: %v %s", command, err, out)
		}
	}
	again, err := d.bursar("login")
	if err != nil || !strings.HasPrefix(again, at) || !strings.Contains(d.get(strings.TrimSpace(again)), "<title>Overview") {
		t.Errorf("login: %s, %v", again, err)
	}
}
