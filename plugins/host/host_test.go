package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/logtest"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// programs is a folder with the plugin that misbehaves.
var programs string

func TestMain(m *testing.M) {
	if path := os.Getenv("HOST_TEST_DAEMON"); path != "" {
		daemon(path)
	}
	dir, err := os.MkdirTemp("", "host-test")
	if err != nil {
		panic(err)
	}
	programs = dir
	if err := programtest.Build(dir, map[string]string{"bursar-source-hostile": "plugins/host/testdata/hostile"}); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// daemon launches a plugin, prints the number of its process, and waits.
func daemon(path string) {
	p, err := Launch(context.Background(), Spec{Kind: "source", Type: "hostile", Path: path, Dev: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

func TestPluginEndsWhenTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	self := exec.Command(os.Args[0])
	dir, err := os.MkdirTemp("", "h") // a killed daemon cleans nothing up
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self.Env = append(os.Environ(), "TMPDIR="+dir, "HOST_TEST_DAEMON="+filepath.Join(programs, "bursar-source-hostile"))
	out, err := self.StdoutPipe()
	if err == nil {
		err = self.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	_, err = fmt.Fscan(out, &pid)
	self.Process.Kill()
	self.Wait()
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, pid)
}

// awaitEnd waits until the process is gone, or dead and not reaped.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if state := processState(pid); state == "" || state == "Z" {
			return
		}
	}
	t.Errorf("the process %d lives", pid)
}

// hostile is the spec of the plugin that misbehaves in that way.
func hostile(t *testing.T, how string) Spec {
	return Spec{
		Kind: "source", Type: "hostile", Path: filepath.Join(programs, "bursar-source-hostile"),
		Env: map[string]string{"HOSTILE": how}, Dev: true, TempDir: shortDir(t),
	}
}

// shortDir is a folder with a path that leaves room for a socket's name.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		os.RemoveAll(dir)
	})
	return dir
}

func launch(t *testing.T, spec Spec) *Process {
	t.Helper()
	p, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func mustFail(t *testing.T, spec Spec, want string) error {
	t.Helper()
	p, err := Launch(t.Context(), spec)
	if err == nil {
		p.Close()
		t.Fatal("the launch succeeded")
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not say %q", err, want)
	}
	return err
}

// collect configures the plugin, collects once and returns how it ended.
func collect(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := p.Source().Configure(ctx, &bursarv1.ConfigureRequest{Config: &bursarv1.Node{Block: true}}); err != nil && status.Code(err) != codes.Unimplemented {
		return err
	}
	stream, err := p.Source().Collect(ctx)
	if err != nil {
		return err
	}
	start := &bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Start_{Start: &bursarv1.CollectRequest_Start{}}}
	if err := stream.Send(start); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

func TestPluginIsDescribedPingedAndClosed(t *testing.T) {
	p := launch(t, hostile(t, ""))
	d, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.GetType() != "hostile" || d.GetInterval() != "1m0s" || len(d.GetAttributes()) != 1 {
		t.Errorf("description: %v", d)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := collect(t.Context(), p); !errors.Is(err, io.EOF) {
		t.Errorf("collect: %v", err)
	}
	p.Close()
	<-p.Done()
	if p.Err() == nil || alive(p.PID()) {
		t.Errorf("after Close: %v, alive %v", p.Err(), alive(p.PID()))
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestBadStartIsAClearError(t *testing.T) {
	cases := []struct {
		how, want string
	}{
		{"crash-at-start", "exit status 3"},
		{"silent", "not ready within"},
		{"garbage", "not the handshake of a plugin"},
		{"flood-before-handshake", "not the handshake of a plugin"},
		{"wrong-protocol", "incompatible API version"},
		{"net-rpc", "unsupported plugin protocol"},
		{"elsewhere", "only a unix socket is accepted"},
		{"deaf", "not ready within"},
	}
	for _, c := range cases {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			spec := hostile(t, c.how)
			if c.want == "not ready within" {
				spec.StartTimeout = time.Second
			}
			err := mustFail(t, spec, c.want)
			if !errors.Is(err, ErrCrash) {
				t.Errorf("%v is no crash", err)
			}
			if len(err.Error()) > 8<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestErrorOfACrashShowsTheLastLinesWithoutTheirEscapes(t *testing.T) {
	err := mustFail(t, hostile(t, "crash-at-start"), `cannot find \x1b[31mmy brain`)
	if strings.ContainsRune(err.Error(), 0x1b) {
		t.Error("a terminal's escape came through")
	}
}

func TestCancelledLaunchLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := Launch(ctx, hostile(t, "silent")); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

func TestBadDescriptionIsRefused(t *testing.T) {
	cases := []struct{ how, want string }{
		{"another-type", `it says that it is "slurm"`},
		{"bad-attribute", `attribute "a b" is not an identifier`},
		{"panic-in-describe", "panic in Describe: no idea"},
	}
	for _, c := range cases {
		t.Run(c.how, func(t *testing.T) {
			_, err := launch(t, hostile(t, c.how)).Describe(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
}

func TestCrashInTheMiddleEndsTheCallAndNothingElse(t *testing.T) {
	t.Parallel()
	good, bad := launch(t, hostile(t, "")), launch(t, hostile(t, "crash"))
	if err := collect(t.Context(), bad); status.Code(err) != codes.Unavailable {
		t.Errorf("collect: %v", err)
	}
	<-bad.Done()
	if err := bad.Err(); !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("end: %v", err)
	}
	if err := collect(t.Context(), good); !errors.Is(err, io.EOF) {
		t.Errorf("the other one: %v", err)
	}
}

func TestPanicInCollectIsAnErrorAndThePluginLives(t *testing.T) {
	t.Parallel()
	p := launch(t, hostile(t, "panic"))
	for range 2 {
		if err := collect(t.Context(), p); err == nil || !strings.Contains(err.Error(), "panic in Collect: in the middle") {
			t.Errorf("collect: %v", err)
		}
	}
}

func TestHugeMessageIsRefused(t *testing.T) {
	p := launch(t, hostile(t, "huge"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := collect(t.Context(), p); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("collect: %v", err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("the message cost %d bytes", grown)
	}
}

func TestPluginWithoutCertificateServesOnItsPrivateSocket(t *testing.T) {
	t.Parallel()
	d, err := launch(t, hostile(t, "no-certificate")).Describe(t.Context())
	if err != nil || d.GetVersion() != "python" {
		t.Errorf("description: %v, %v", d, err)
	}
}

func launchLogged(t *testing.T, how string) (*Process, *logtest.Log) {
	t.Helper()
	log := new(logtest.Log)
	spec := hostile(t, how)
	spec.Logger = log.Logger()
	return launch(t, spec), log
}

func TestFloodOfOutputIsCutToAHundredLinesASecond(t *testing.T) {
	t.Parallel()
	p, log := launchLogged(t, "flood")
	began := time.Now()
	go collect(t.Context(), p)
	log.Await(t, "lines dropped")
	seconds := int(time.Since(began)/time.Second) + 2
	p.Close()
	if n := log.Lines(); n > seconds*(maxLines+1)+20 {
		t.Errorf("%d lines in %d seconds", n, seconds)
	}
	if strings.ContainsRune(log.String(), 7) {
		t.Error("a bell came through")
	}
}

func TestLogLineThatIsNoEntryStopsNobody(t *testing.T) {
	t.Parallel()
	p, log := launchLogged(t, "log-panic")
	collect(t.Context(), p)
	log.Await(t, "@message")
	if err := p.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHungPluginIsKilledByClose(t *testing.T) {
	t.Parallel()
	p := launch(t, hostile(t, "hang"))
	go collect(t.Context(), p)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if alive(p.PID()) {
		t.Error("it lives")
	}
}

func TestChildrenOfAPluginEndWithIt(t *testing.T) {
	t.Parallel()
	p := launch(t, hostile(t, "child"))
	err := collect(t.Context(), p)
	_, number, ok := strings.Cut(status.Convert(err).Message(), "child ")
	pid, atoi := strconv.Atoi(number)
	if !ok || atoi != nil {
		t.Fatalf("collect: %v", err)
	}
	p.Close()
	awaitEnd(t, pid)
}

func processState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0]
}

func TestPluginInheritsNoSecretsFromTheDaemon(t *testing.T) {
	t.Setenv("SECRET_OF_THE_DAEMON", "x")
	t.Setenv("TZ", "Europe/Berlin")
	err := collect(t.Context(), launch(t, hostile(t, "environment")))
	env := status.Convert(err).Message()
	if strings.Contains(env, "SECRET") || !strings.Contains(env, "TZ=Europe/Berlin") || !strings.Contains(env, "HOSTILE=environment") {
		t.Errorf("environment: %s", env)
	}
}

func TestLaunch_PinnedBinary_RunsUntilItIsReplaced(t *testing.T) {
	spec := hostile(t, "")
	copied := filepath.Join(folder(t, t.TempDir(), 0o755), "bursar-source-hostile")
	copyFile(t, spec.Path, copied)
	spec.Path, spec.SHA256 = copied, sum(t, copied)
	for range 2 { // a hash that is kept between launches would fail the second time
		if p := launch(t, spec); p.Stale() {
			t.Error("it is stale")
		}
	}
	p := launch(t, spec)
	next := copied + ".next"
	if err := programtest.WriteProgram(next, "#!/bin/sh\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, copied); err != nil {
		t.Fatal(err)
	}
	if !p.Stale() {
		t.Error("another file is in its place, and it is not stale")
	}
	if err := mustFail(t, spec, sum(t, copied)); !errors.Is(err, ErrChecksum) {
		t.Errorf("error: %v", err)
	}
}

func TestWrongChecksumIsRefused(t *testing.T) {
	spec := hostile(t, "")
	spec.SHA256 = strings.Repeat("00", 32)
	if err := mustFail(t, spec, sum(t, spec.Path)); !errors.Is(err, ErrChecksum) {
		t.Errorf("error: %v", err)
	}
	spec.SHA256 = "abc"
	mustFail(t, spec, "64 hexadecimal digits")
}

func TestUnsafeBinaryIsNotStarted(t *testing.T) {
	spec := hostile(t, "")
	open := folder(t, t.TempDir(), 0o777)
	copied := filepath.Join(open, "bursar-source-hostile")
	copyFile(t, spec.Path, copied)
	spec.Path = copied
	if err := mustFail(t, spec, open); !errors.Is(err, ErrUnsafe) {
		t.Errorf("error: %v", err)
	}
}

func TestClosedAndFailedPluginsLeaveNoGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	p := launch(t, hostile(t, ""))
	collect(t.Context(), p)
	p.Close()
	for _, how := range []string{"crash-at-start", "garbage", "wrong-protocol"} {
		mustFail(t, hostile(t, how), "")
	}
	goleak.VerifyNone(t, before)
}

func TestSupervisorReplacesAProcessThatHangs(t *testing.T) {
	t.Parallel()
	spec := hostile(t, "")
	s := Supervise(Options[*Process]{
		Launch:     func(ctx context.Context) (*Process, error) { return Launch(ctx, spec) },
		MinBackoff: time.Millisecond, PingEvery: 50 * time.Millisecond, PingTimeout: time.Second,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	first, err := s.Plugin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	second, err := s.Plugin(t.Context())
	if err != nil || second.PID() == first.PID() || second.Version() != 1 {
		t.Errorf("second: %v", err)
	}
	if st := s.Status(); st.Failures != 1 || !strings.Contains(st.Err.Error(), "hangs") {
		t.Errorf("status: %+v", st)
	}
	cancel()
	if err := <-ended; err != nil || alive(second.PID()) {
		t.Errorf("end: %v", err)
	}
}

func TestReplacedBinaryIsNoticed(t *testing.T) {
	t.Parallel()
	spec := hostile(t, "")
	copied := filepath.Join(t.TempDir(), "bursar-source-hostile")
	copyFile(t, spec.Path, copied)
	spec.Path = copied
	p := launch(t, spec)
	if p.Stale() {
		t.Error("stale at once")
	}
	copyFile(t, copied, copied+".new")
	if err := os.Rename(copied+".new", copied); err != nil {
		t.Fatal(err)
	}
	if !p.Stale() {
		t.Error("not noticed")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = programtest.WriteProgram(to, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sum(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}
