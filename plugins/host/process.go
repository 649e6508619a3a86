package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Spec says which plugin to start, and how.
type Spec struct {
	Kind string // "source" or "action"
	Type string // for example "slurm"
	Path string // of the binary, absolute

	// SHA256 pins the binary: 64 hexadecimal digits. Empty: any binary that
	// Check accepts.
	SHA256 string

	// Env is set in the plugin's environment, over PATH, HOME, LANG, LC_ALL and
	// TZ of the daemon's, which are all that it inherits.
	Env map[string]string

	Dir     string // the working directory; "/" when empty
	TempDir string // for the folder of the socket; the system's, or /tmp, when it is empty or has no room
	Dev     bool   // accept binaries below folders such as /tmp

	// StartTimeout is how long a plugin may take until it can be called; ten
	// seconds when zero.
	StartTimeout time.Duration

	// Logger gets the plugin's log lines, at most 100 a second, and nothing else.
	// The plugin is told the least level that it takes. Nil: they are dropped.
	Logger *slog.Logger
}

const (
	startTimeout = 10 * time.Second
	stopTimeout  = 3 * time.Second
	dumpTimeout  = 5 * time.Second
)

func (s Spec) withDefaults() Spec {
	if s.StartTimeout == 0 {
		s.StartTimeout = startTimeout
	}
	if s.Dir == "" {
		s.Dir = "/"
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// tempDirs are where the folder of the socket may be, the best first.
func (s *Spec) tempDirs() []string {
	dirs := []string{s.TempDir, os.TempDir(), "/tmp"}
	return slices.Compact(slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" }))
}

func (s *Spec) specName() string { return s.Kind + " plugin " + s.Type }

// Process is a running plugin.
type Process struct {
	spec   Spec
	image  *image
	client *plugin.Client
	child  *child
	folder *socketFolder // of its socket
	conn   *grpc.ClientConn
	output []*lineWriter

	closing sync.Once
}

// Launch starts a plugin and connects to it. It checks the binary first, with
// ErrUnsafe, ErrChecksum or the system's error when it is refused. Nothing is
// left running after an error. Ctx bounds the launch, not the life of the
// process, which the caller ends with Close.
func Launch(ctx context.Context, spec Spec) (*Process, error) {
	spec = spec.withDefaults()
	img, err := loadImage(&spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.specName(), err)
	}
	p := &Process{spec: spec, image: img}
	if err := p.startProcess(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", spec.specName(), err)
	}
	if spec.SHA256 != "" && p.Stale() {
		p.Close()
		return nil, fmt.Errorf("%s: %w: %s was replaced while it was started", spec.specName(), ErrChecksum, spec.Path)
	}
	return p, nil
}

func (p *Process) startProcess(ctx context.Context) error {
	var err error
	if p.folder, err = newFolder(p.spec.tempDirs()...); err != nil {
		return fmt.Errorf("make a folder for its socket: %w", err)
	}
	log := &lines{log: p.spec.Logger}
	p.output = []*lineWriter{log.writerFor(streamOut), log.writerFor(streamErr)}
	config := p.clientConfig()
	p.client, p.child = plugin.NewClient(config), newChild(log)
	ctx, cancel := context.WithTimeout(ctx, p.spec.StartTimeout)
	defer cancel()
	if err := p.shakeHands(ctx, config); err != nil {
		err = p.explainStart(ctx, err, log)
		p.abandonStart()
		return err
	}
	return nil
}

// shakeHands starts the process and connects, until ctx ends.
func (p *Process) shakeHands(ctx context.Context, config *plugin.ClientConfig) error {
	result := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { p.killProcess() })
	defer stop()
	go func() { result <- p.connectTo(ctx, config) }()
	return <-result
}

func (p *Process) connectTo(ctx context.Context, config *plugin.ClientConfig) error {
	if _, err := p.client.Start(); err != nil {
		return err
	}
	if !p.child.hasCertificate() {
		config.TLSConfig = nil // its socket is in a folder that only this user can enter
	}
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	c, ok := protocol.(*plugin.GRPCClient)
	if !ok {
		return errors.New("the plugin does not speak gRPC")
	}
	p.conn = c.Conn
	return p.Ping(ctx)
}

// clientConfig is what go-plugin gets.
func (p *Process) clientConfig() *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: sdk.ProtocolVersion, MagicCookieKey: sdk.CookieKey, MagicCookieValue: sdk.CookieValue,
		},
		Plugins:          plugin.PluginSet{p.spec.Kind: nothing{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     2 * p.spec.StartTimeout, // the context of the start ends first, and says why
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.folder.path},
		SyncStdout:       p.output[0],
		SyncStderr:       p.output[1],
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(sdk.MaxMessage), grpc.MaxCallSendMsgSize(sdk.MaxMessage))},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			p.prepareCommand(cmd)
			p.child.cmd, p.child.socketDir = cmd, socketDir
			return p.child, nil
		},
	}
}

// prepareCommand makes the command of what go-plugin has set up.
func (p *Process) prepareCommand(cmd *exec.Cmd) {
	handshake := cmd.Env
	*cmd = exec.Cmd{
		Path: p.image.path, Args: []string{p.spec.Path}, Dir: p.spec.Dir,
		Env: append(environmentOf(&p.spec), handshake...), SysProcAttr: process.Attributes(),
	}
}

// inheritedVariables are the variables of the daemon that a plugin gets.
func inheritedVariables() []string { return []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ"} }

func environmentOf(spec *Spec) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", sdk.LevelKey + "=" + leastLevel(spec.Logger)}
	for _, name := range inheritedVariables() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range spec.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// leastLevel is the least level that the logger takes.
func leastLevel(log *slog.Logger) string {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if log.Enabled(context.Background(), l) {
			return l.String()
		}
	}
	return slog.LevelError.String()
}

// nothing stands for the plugin in go-plugin's set: the services are called on
// the connection.
type nothing struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer registers nothing.
func (nothing) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

// GRPCClient returns the connection.
func (nothing) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

// explainStart says what went wrong at the start in the words of who knows best.
func (p *Process) explainStart(ctx context.Context, err error, log *lines) error {
	p.killProcess()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case p.child.processNumber() == 0:
		return fmt.Errorf("start %s: %w", p.spec.Path, err)
	case Late(ctx):
		err = fmt.Errorf("it was not ready within %s", p.spec.StartTimeout)
	case p.child.handshakeRefusal() != nil:
		err = p.child.handshakeRefusal()
	}
	_ = p.child.Wait(ctx) // its error is p.child.exit
	err = fmt.Errorf("start %s: %w", filepath.Base(p.spec.Path), err)
	if ctx.Err() == nil && p.child.exit != nil {
		err = fmt.Errorf("%w; %w", err, p.child.exit)
	}
	if tail := log.lastLines(); tail != "" {
		err = fmt.Errorf("%w; its last output:\n%s", err, tail)
	}
	return crash{err}
}

func (p *Process) killProcess() {
	_ = p.child.Kill(context.Background()) // an error: it is gone, or the system will not let us
}

// abandonStart cleans up after a start that failed.
func (p *Process) abandonStart() {
	p.killProcess()
	p.client.Kill()
	if dir := p.child.socketDir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	_ = p.folder.removeFolder() // what stays is removed before the next start of a plugin
	p.drainOutput()
}

func (p *Process) drainOutput() {
	for _, w := range p.output {
		w.stopWriting()
	}
}

// Source returns the client of a source plugin.
func (p *Process) Source() bursarv1.SourcePluginClient { return bursarv1.NewSourcePluginClient(p.conn) }

// Conn returns the connection, for the services of other kinds of plugins.
func (p *Process) Conn() grpc.ClientConnInterface { return p.conn }

// PID returns the number of the process.
func (p *Process) PID() int { return p.child.processNumber() }

// Version returns the version of the plugin protocol that both sides speak. That
// of the plugin itself is in its description.
func (p *Process) Version() int { return p.client.NegotiatedVersion() }

// Ping returns nil when the plugin answers.
func (p *Process) Ping(ctx context.Context) error {
	_, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// Stale reports whether the binary is another one than the one that runs: it was
// replaced, changed or removed.
func (p *Process) Stale() bool {
	info, err := os.Lstat(p.spec.Path)
	return err != nil || stampOf(info) != p.image.stamp
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.child.done }

// Err returns how the process ended, with the last lines that it wrote or why it was
// taken for hung, and nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.child.done:
	default:
		return nil
	}
	if hung := p.child.blameFor(); hung != nil {
		return fmt.Errorf("%s: %w", p.spec.specName(), hung)
	}
	if tail := p.child.log.lastLines(); tail != "" {
		return fmt.Errorf("%s: %w; its last output:\n%s", p.spec.specName(), p.child.exit, tail)
	}
	return fmt.Errorf("%s: %w", p.spec.specName(), p.child.exit)
}

// Close asks the plugin to end, kills it and all that it has started when it
// does not within three seconds, and returns when nothing of it is left. Closing
// twice is a no-op.
func (p *Process) Close() error {
	p.closing.Do(func() {
		deadline := time.AfterFunc(stopTimeout, p.killProcess)
		defer deadline.Stop()
		p.client.Kill()
		<-p.child.done
		_ = p.folder.removeFolder() // what stays is removed before the next start of a plugin
		p.drainOutput()
	})
	return nil
}

// Hang ends a plugin that hangs, which why says: Err returns it from then on. The
// plugin is sent SIGQUIT, on which a Go program writes its goroutines to standard error
// and ends; they are logged as warnings. What has not ended after five seconds is
// killed, with all that it has started. Hang returns when the process has ended.
func (p *Process) Hang(why error) {
	if !p.child.endForHanging(why) {
		return // it has ended, or is blamed already
	}
	p.spec.Logger.Error("the plugin hangs and is killed; its goroutines follow", "error", why)
	p.child.log.dumpNext()
	p.child.askToQuit()
	late := time.AfterFunc(dumpTimeout, p.killProcess)
	defer late.Stop()
	<-p.child.done
}

// Kill is Close without asking: the process gets no time to end by itself.
func (p *Process) Kill() error {
	p.killProcess()
	return p.Close()
}

var _ io.Closer = (*Process)(nil)
