//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The schedds of a pool.
const (
	FirstSchedd  = "first@" + boxHost
	SecondSchedd = "second@" + boxHost
)

// Pool is a running HTCondor 23.9 of Debian 13: a pool on one machine with two schedds
// and one slot of eight cores, 8000 MB and two GPUs of a custom resource, which jobs cut
// theirs from. The history rotates every few jobs. It is stopped at the end of the test
// that started it.
type Pool struct {
	t   testing.TB
	dir string
	box *box
}

// Condor starts a pool with empty queues and returns when its slot is ready. The settings
// are lines of its configuration. It needs root. Several may run at the same time.
func Condor(t testing.TB, settings ...string) *Pool {
	t.Helper()
	root := requireInstalled(t, filepath.Join(Cache(), "htcondor"))
	p := &Pool{t: t, dir: tempDir(t, "condor")}
	err := p.writeConfig(root, settings)
	if err == nil {
		p.box, err = newBox(p.dir, root, nil)
	}
	if err != nil {
		t.Fatalf("rig: prepare HTCondor: %v", err)
	}
	t.Cleanup(p.stopPool)
	if err := p.startDaemons(); err != nil {
		t.Fatalf("rig: start HTCondor: %v\n%s", err, p.logEnds())
	}
	return p
}

func (p *Pool) stopPool() {
	if p.t.Failed() {
		p.t.Logf("rig: HTCondor, logs:\n%s", p.logEnds())
	}
	p.box.endProcesses()
}

// condorConfig is the whole configuration; %s is the directory.
const condorConfig = `
RELEASE_DIR = /usr
LOCAL_DIR = %s
REQUIRE_LOCAL_CONFIG_FILE = false
RUN = $(LOCAL_DIR)/run
LOG = $(LOCAL_DIR)/log
LOCK = $(LOCAL_DIR)/lock
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
BIN = /usr/bin
LIB = /usr/lib/condor
SBIN = /usr/sbin
LIBEXEC = /usr/libexec/condor
CONDOR_HOST = 127.0.0.1
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
COLLECTOR_PORT = 19618
SHARED_PORT_PORT = 19618
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD SCHEDD2 STARTD
DC_DAEMON_LIST =+ SCHEDD2
SCHEDD_NAME = first
SCHEDD2 = $(SCHEDD)
SCHEDD2_ARGS = -local-name schedd2
SCHEDD2_LOG = $(LOG)/Schedd2Log
SCHEDD2.SCHEDD_NAME = second
SCHEDD2.SCHEDD_LOG = $(LOG)/Schedd2Log
SCHEDD2.SPOOL = $(LOCAL_DIR)/second
SCHEDD2.HISTORY = $(LOCAL_DIR)/second/history
SCHEDD2.SCHEDD_ADDRESS_FILE = $(LOCAL_DIR)/second/.schedd_address
use feature : PartitionableSlot
NUM_CPUS = 8
MEMORY = 8000
MACHINE_RESOURCE_GPUs = GPU-aaaa0001, GPU-aaaa0002
HEPScore = 17.5
GPUs_DeviceName = "Rig 9000"
DedicatedScheduler = "DedicatedScheduler@first@rig"
STARTD_ATTRS = $(STARTD_ATTRS) HEPScore GPUs_DeviceName DedicatedScheduler
SYSTEM_JOB_MACHINE_ATTRS = $(SYSTEM_JOB_MACHINE_ATTRS) HEPScore GPUs_DeviceName
START = True
SUSPEND = False
PREEMPT = False
KILL = False
RUNBENCHMARKS = 0
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 2
UPDATE_INTERVAL = 5
STARTER_UPDATE_INTERVAL = 3
DAGMAN_USER_LOG_SCAN_INTERVAL = 1
DAGMAN_USE_STRICT = 0
MASTER_BACKOFF_CONSTANT = 1
MASTER_BACKOFF_CEILING = 2
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
SEC_CLIENT_AUTHENTICATION_METHODS = FS
ALLOW_ADMINISTRATOR = root@*, condor@*
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
UID_DOMAIN = rig.local
TRUST_UID_DOMAIN = True
CGROUP_TRACKING = False
BASE_CGROUP =
DISCARD_SESSION_KEYRING_ON_STARTUP = False
MOUNT_UNDER_SCRATCH =
MOUNT_PRIVATE_DEV_SHM = False
USE_PID_NAMESPACES = False
JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history
MAX_HISTORY_LOG = 30000
MAX_HISTORY_ROTATIONS = 1000
MAX_EPOCH_HISTORY_LOG = 60000
MAX_EPOCH_HISTORY_ROTATIONS = 1000
`

func (p *Pool) writeConfig(root string, settings []string) error {
	if err := os.Mkdir(filepath.Join(p.dir, "etc"), 0o755); err != nil {
		return err
	}
	if err := writeEtc(p.dir, root, []account{{Alice, AliceID}, {Bob, BobID}}); err != nil {
		return err
	}
	uid, gid, err := idsOf(filepath.Join(p.dir, "etc/passwd"), "condor")
	if err != nil {
		return err
	}
	for name, owner := range map[string][2]int{
		"run": {uid, gid}, "log": {uid, gid}, "lock": {uid, gid}, "spool": {uid, gid}, "execute": {uid, gid}, "second": {uid, gid},
		"home": {}, "home/" + Alice: {AliceID, AliceID}, "home/" + Bob: {BobID, BobID}, "bin": {},
	} {
		dir := filepath.Join(p.dir, name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, owner[0], owner[1])); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"condor_config": fmt.Sprintf(condorConfig, p.dir) + strings.Join(settings, "\n") + "\n",
		"etc/hosts":     "127.0.0.1 " + boxHost + " localhost\n", // a schedd calls itself by the first name
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// idsOf returns the number of a user and of its group.
func idsOf(passwd, user string) (uid, gid int, err error) {
	text, err := os.ReadFile(passwd)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, user+":x:"); ok {
			_, err := fmt.Sscanf(rest, "%d:%d:", &uid, &gid)
			return uid, gid, err
		}
	}
	return 0, 0, fmt.Errorf("%s has no user %s", passwd, user)
}

func (p *Pool) env() []string { return []string{"CONDOR_CONFIG=" + p.Config()} }

func (p *Pool) startDaemons() error {
	for _, name := range []string{"condor_history", "condor_q", "condor_status", "condor_config_val"} {
		if err := p.box.writeWrapper(filepath.Join(p.Commands(), name), p.env(), "/usr/bin/"+name); err != nil {
			return err
		}
	}
	master := p.box.command(context.Background(), "root", p.dir, p.env(), "/usr/sbin/condor_master", "-f")
	if _, err := startTied(master); err != nil {
		return err
	}
	deadline := time.Now().Add(bootLimit)
	for {
		slots, err := p.Run("condor_status", "-af", "Name")
		schedds, err2 := p.Run("condor_status", "-schedd", "-af", "Name")
		if err == nil && err2 == nil && slots != "" && strings.Contains(schedds, FirstSchedd) && strings.Contains(schedds, SecondSchedd) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the pool is not complete: slots %q, schedds %q: %w", slots, schedds, errors.Join(err, err2))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Config is the path of condor_config.
func (p *Pool) Config() string { return filepath.Join(p.dir, "condor_config") }

// Commands is a directory of HTCondor's commands that ask this pool from anywhere on the
// machine.
func (p *Pool) Commands() string { return filepath.Join(p.dir, "bin") }

// Dir is HTCondor's own directory.
func (p *Pool) Dir() string { return p.dir }

// History is the path of the history of a schedd.
func (p *Pool) History(schedd string) string {
	if schedd == SecondSchedd {
		return filepath.Join(p.dir, "second/history")
	}
	return filepath.Join(p.dir, "spool/history")
}

// Epochs is the path of the epoch history of both schedds.
func (p *Pool) Epochs() string { return filepath.Join(p.dir, "spool/epoch_history") }

// Run runs a command as root inside the box.
func (p *Pool) Run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	return output(p.box.command(ctx, "root", p.dir, p.env(), name, args...))
}

// As runs a command as user in the user's home.
func (p *Pool) As(user, name string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	out, err := output(p.box.command(ctx, user, p.Home(user), p.env(), name, args...))
	if err != nil {
		p.t.Fatalf("rig: %v", err)
	}
	return out
}

// Home is the home of a user.
func (p *Pool) Home(user string) string { return filepath.Join(p.dir, "home", user) }

// Submit submits a job of a user to a schedd and returns the number of its cluster. The
// lines are those of a submit file, without queue where they have one.
func (p *Pool) Submit(schedd, user string, lines ...string) string {
	p.t.Helper()
	f, err := os.CreateTemp(p.Home(user), "*.sub")
	if err != nil {
		p.t.Fatal(err)
	}
	text := "transfer_executable = false\n" + strings.Join(lines, "\n") + "\n"
	if !strings.Contains(text, "\nqueue") {
		text += "queue\n"
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		p.t.Fatal(err)
	}
	out := p.As(user, "condor_submit", "-terse", "-name", schedd, f.Name())
	cluster, _, ok := strings.Cut(strings.TrimSpace(out), ".")
	if !ok {
		p.t.Fatalf("rig: condor_submit: %s", out)
	}
	return cluster
}

// KillSchedd kills a schedd, which the master starts again some seconds later. Where it is
// not there yet, nothing happens.
func (p *Pool) KillSchedd(schedd string) {
	p.t.Helper()
	pattern := "condor_schedd$"
	if schedd == SecondSchedd {
		pattern = "condor_schedd -local-name"
	}
	_, err := p.Run("pkill", "-KILL", "-f", pattern)
	p.t.Logf("rig: killed %s: %t", schedd, err == nil)
}

// CutNetwork ends all connections of the pool, so that shadows have to find their jobs again.
func (p *Pool) CutNetwork() {
	p.t.Helper()
	out, err := exec.Command("nsenter", "-t", strconv.Itoa(p.box.init.Process.Pid), "-n", "ss", "-K", "state", "established").CombinedOutput()
	if err != nil {
		p.t.Fatalf("rig: cut the network: %v\n%s", err, out)
	}
	p.t.Logf("rig: cut %d connections", strings.Count(string(out), "\n")-1)
}

// logEnds are the ends of all logs.
func (p *Pool) logEnds() string {
	var out strings.Builder
	paths, _ := filepath.Glob(filepath.Join(p.dir, "log/*Log*")) // a pattern that is right
	for _, path := range paths {
		text, _ := exec.Command("tail", "-n", "15", path).Output()
		fmt.Fprintf(&out, "--- %s\n%s", filepath.Base(path), text)
	}
	return out.String()
}
