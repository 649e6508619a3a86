//go:build e2e

package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/porttest"
)

// nomadVersion is what e2e/setup.sh builds.
const nomadVersion = "1.11.3"

// NomadCluster is a Nomad server and a Nomad client, two processes on loopback, with
// their data on disk.
type NomadCluster struct {
	t      testing.TB
	dir    string
	bin    string
	URL    string // of the server
	server *server
	client *server
}

// nomadServer is the server's configuration: the ports of HTTP, RPC and Serf follow.
const nomadServer = `bind_addr            = "127.0.0.1"
disable_update_check = true
name                 = "rig-server"
log_level            = "WARN"
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
server {
  enabled          = true
  bootstrap_expect = 1
}
ports {
  http = %s
  rpc  = %s
  serf = %s
}
`

const nomadClient = `bind_addr            = "127.0.0.1"
disable_update_check = true
name                 = "rig-client"
log_level            = "WARN"
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
plugin_dir           = %q
client {
  enabled           = true
  servers           = ["127.0.0.1:%s"]
  network_interface = "lo"
  cpu_total_compute = 100000
  memory_total_mb   = 100000
  options = {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean"
  }
}
ports {
  http = %s
}
plugin "mock_driver" {
  config {
  }
}
plugin "nomad-device-example" {
  config {
    dir = %q
  }
}
`

// Nomad starts a Nomad with two devices of the kind nomad/file/mock and waits until
// its node is ready. It is stopped and removed at the end of the test.
func Nomad(t testing.TB) *NomadCluster {
	t.Helper()
	home := filepath.Join(Cache(), "nomad-"+nomadVersion)
	c := &NomadCluster{t: t, dir: tempDir(t, "nomad"), bin: requireInstalled(t, filepath.Join(home, "nomad"))}
	port := func() string {
		_, p, err := net.SplitHostPort(porttest.Free(t))
		if err != nil {
			t.Fatalf("rig: %v", err)
		}
		return p
	}
	web, rpc := port(), port()
	c.URL = "http://127.0.0.1:" + web
	devices := filepath.Join(c.dir, "devices")
	c.writeFile("server.hcl", fmt.Sprintf(nomadServer, web, rpc, port()))
	c.writeFile("client.hcl", fmt.Sprintf(nomadClient, filepath.Join(home, "plugins"), rpc, port(), devices))
	for _, device := range []string{"dev0", "dev1"} {
		c.writeFile("devices/"+device, "")
	}
	t.Cleanup(func() {
		c.stopServer(&c.client)
		c.stopServer(&c.server)
		c.unmount()
		if t.Failed() {
			for _, name := range []string{"server", "client"} {
				text, _ := os.ReadFile(filepath.Join(c.dir, name+".log"))
				t.Logf("the end of the log of Nomad's %s:\n%s", name, text[max(0, len(text)-3000):])
			}
		}
	})
	c.StartServer()
	c.client = c.startServer("client")
	waitFor(t, "a ready node of Nomad", 2*time.Minute, c.checkReady)
	return c
}

func (c *NomadCluster) writeFile(name, text string) {
	path := filepath.Join(c.dir, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
}

func (c *NomadCluster) startServer(name string) *server {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	defer log.Close()
	cmd := exec.Command(c.bin, "agent", "-config", filepath.Join(c.dir, name+".hcl"), "-data-dir", filepath.Join(c.dir, name))
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = log, log, []string{"PATH=" + searchPath, "HOME=" + c.dir}, c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s, err := startTied(cmd)
	if err != nil {
		c.t.Fatalf("rig: start Nomad: %v", err)
	}
	return s
}

func (c *NomadCluster) stopServer(s **server) {
	if *s != nil {
		_ = syscall.Kill(-(*s).cmd.Process.Pid, syscall.SIGKILL) // its plugins, too
		(*s).stop(syscall.SIGKILL, 10*time.Second)
		*s = nil
	}
}

// unmount removes the mounts that the client leaves in the folders of allocations.
func (c *NomadCluster) unmount() {
	for _, pattern := range []string{"client/alloc/*/*/*", "client/alloc_mounts/*", "client/alloc/*/*"} {
		paths, _ := filepath.Glob(filepath.Join(c.dir, pattern)) // a pattern that is right
		for _, path := range paths {
			_ = syscall.Unmount(path, syscall.MNT_DETACH) // most are no mounts
		}
	}
}

func (c *NomadCluster) checkReady() error {
	select {
	case <-c.server.done:
		c.t.Fatal("rig: Nomad's server has ended")
	case <-c.client.done:
		c.t.Fatal("rig: Nomad's client has ended")
	default:
	}
	var nodes []struct{ Status string }
	if err := c.Get("/v1/nodes", &nodes); err != nil {
		return err
	}
	if len(nodes) != 1 || nodes[0].Status != "ready" {
		return fmt.Errorf("nodes: %+v", nodes)
	}
	return nil
}

// StartServer starts the server; it need not be ready when StartServer returns.
func (c *NomadCluster) StartServer() {
	c.t.Helper()
	c.server = c.startServer("server")
}

// KillServer ends the server as a power cut would. The client and its tasks go on.
func (c *NomadCluster) KillServer() { c.stopServer(&c.server) }

// AwaitServer waits until the server has a leader and answers.
func (c *NomadCluster) AwaitServer() {
	c.t.Helper()
	waitFor(c.t, "Nomad's server", 2*time.Minute, func() error {
		var leader string
		if err := c.Get("/v1/status/leader", &leader); err != nil || leader == "" {
			return fmt.Errorf("leader %q: %w", leader, err)
		}
		return nil
	})
}

// Get asks the server.
func (c *NomadCluster) Get(path string, into any) error {
	return c.doJSON(http.MethodGet, path, nil, into)
}

// Do sends body, which may be nil, and fails the test when the server does not take
// it within a minute.
func (c *NomadCluster) Do(method, path string, body, into any) {
	c.t.Helper()
	waitFor(c.t, method+" "+path, time.Minute, func() error { return c.doJSON(method, path, body, into) })
}

func (c *NomadCluster) doJSON(method, path string, body, into any) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(method, c.URL+path, &text)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s: %s", resp.Status, why)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// Namespace makes a namespace.
func (c *NomadCluster) Namespace(name string) {
	c.t.Helper()
	c.Do(http.MethodPut, "/v1/namespace/"+name, map[string]any{"Name": name}, nil)
}

// Register registers a job as Nomad's API has it.
func (c *NomadCluster) Register(job map[string]any) {
	c.t.Helper()
	c.Do(http.MethodPut, "/v1/jobs", map[string]any{"Job": job}, nil)
}

// Purge stops a job and has Nomad forget it.
func (c *NomadCluster) Purge(namespace, id string) {
	c.t.Helper()
	c.Do(http.MethodDelete, "/v1/job/"+url.PathEscape(id)+"?purge=true&namespace="+namespace, nil, nil)
}

// Stop stops a job.
func (c *NomadCluster) Stop(namespace, id string) {
	c.t.Helper()
	c.Do(http.MethodDelete, "/v1/job/"+url.PathEscape(id)+"?namespace="+namespace, nil, nil)
}

// Collect has Nomad forget all that is over.
func (c *NomadCluster) Collect() {
	c.t.Helper()
	c.Do(http.MethodPut, "/v1/system/gc", nil, nil)
}
