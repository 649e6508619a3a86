//go:build e2e

package rig

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ClickHouse is a server of Debian's release, 18.16.1, which runs from the cache, or the engine
// of a current release behind an HTTP interface.
type ClickHouse struct {
	Address, Native string // of HTTP and of other servers
	Password        string // of the user default; reader has it, too, and may only read

	t       testing.TB
	dir     string
	config  string // without its end
	srv     *server
	current bool
}

// NewCurrentClickHouse is NewClickHouse of the engine of a current release, by chDB. It has no
// native address, knows no users, and does one statement at a time.
func NewCurrentClickHouse(t testing.TB, address string) *ClickHouse {
	t.Helper()
	c := &ClickHouse{Address: address, t: t, dir: tempDir(t, "clickhouse"), current: true}
	t.Cleanup(c.Kill)
	return c
}

// NewClickHouse makes a server with an address of 127.0.0.1 for HTTP and one for the others
// of its cluster "shards", whose native addresses are shards, or its own alone. It ends with the test, and does
// not run yet.
func NewClickHouse(t testing.TB, address, native string, shards ...string) *ClickHouse {
	t.Helper()
	c := &ClickHouse{Address: address, Native: native, Password: "e2e clickhouse s3cret", t: t, dir: tempDir(t, "clickhouse")}
	c.SetProfile("")
	var cluster strings.Builder
	if len(shards) == 0 {
		shards = []string{native}
	}
	for _, shard := range shards {
		host, port, _ := strings.Cut(shard, ":")
		fmt.Fprintf(&cluster, "<shard><replica><host>%s</host><port>%s</port><user>default</user><password>%s</password></replica></shard>\n", host, port, c.Password)
	}
	_, http, _ := strings.Cut(address, ":")
	_, tcp, _ := strings.Cut(native, ":")
	c.config = fmt.Sprintf(`<yandex>
<logger><level>warning</level><console>1</console></logger>
<listen_host>127.0.0.1</listen_host><http_port>%s</http_port><tcp_port>%s</tcp_port>
<path>%[3]s/data/</path><tmp_path>%[3]s/tmp/</tmp_path><users_config>%[3]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><timezone>Europe/Berlin</timezone>
<remote_servers><shards>%[4]s</shards></remote_servers>
`, http, tcp, c.dir, cluster.String())
	c.writeFile("config.xml", c.config+"</yandex>\n")
	t.Cleanup(c.Kill)
	return c
}

// SetProfile gives the user default settings, in XML. The server does not run.
func (c *ClickHouse) SetProfile(settings string) {
	c.t.Helper()
	c.writeFile("users.xml", fmt.Sprintf(`<yandex>
<profiles><default><max_memory_usage>2000000000</max_memory_usage>%[2]s</default><reader><readonly>1</readonly></reader></profiles>
<quotas><default></default></quotas>
<users>
<default><password>%[1]s</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<reader><password>%[1]s</password><networks><ip>127.0.0.1</ip></networks><profile>reader</profile><quota>default</quota></reader>
</users></yandex>
`, c.Password, settings))
}

// Replicate has the server, which does not run yet, meet others in a ZooKeeper: as a replica of a
// shard, with an address of 127.0.0.1 for the others.
func (c *ClickHouse) Replicate(z *ZooKeeper, interserver, shard, replica string) {
	host, port, _ := strings.Cut(interserver, ":")
	zkHost, zkPort, _ := strings.Cut(z.Address, ":")
	c.writeFile("config.xml", fmt.Sprintf(`%s<interserver_http_host>%s</interserver_http_host><interserver_http_port>%s</interserver_http_port>
<zookeeper><node><host>%s</host><port>%s</port></node><session_timeout_ms>3000</session_timeout_ms></zookeeper>
<macros><shard>%s</shard><replica>%s</replica></macros>
</yandex>
`, c.config, host, port, zkHost, zkPort, shard, replica))
}

func (c *ClickHouse) writeFile(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// URL is that of its HTTP interface.
func (c *ClickHouse) URL() string { return "http://" + c.Address }

// Data is the folder of its tables.
func (c *ClickHouse) Data() string { return filepath.Join(c.dir, "data") }

// PasswordFile is a file with the password.
func (c *ClickHouse) PasswordFile() string {
	c.t.Helper()
	c.writeFile("password", c.Password+"\n")
	return filepath.Join(c.dir, "password")
}

// serverCommand is that of the server.
func (c *ClickHouse) serverCommand() *exec.Cmd {
	c.t.Helper()
	if c.current {
		_, file, _, _ := runtime.Caller(0)
		return exec.Command(chDB(c.t), filepath.Join(filepath.Dir(file), "chdb_server.py"), c.Address, filepath.Join(c.dir, "data"))
	}
	root := filepath.Join(Cache(), "clickhouse-18.16.1")
	cmd := exec.Command(requireInstalled(c.t, filepath.Join(root, "usr/sbin/clickhouse-server")), "--config-file="+filepath.Join(c.dir, "config.xml"))
	cmd.Env = []string{"PATH=" + searchPath, "LD_LIBRARY_PATH=" + filepath.Join(root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(root, "lib/x86_64-linux-gnu")}
	return cmd
}

// Start starts the server and waits until it answers.
func (c *ClickHouse) Start() {
	c.t.Helper()
	cmd := c.serverCommand()
	cmd.Dir = c.dir
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if c.srv, err = startTied(cmd); err != nil {
		c.t.Fatalf("rig: start ClickHouse: %v", err)
	}
	waitFor(c.t, "ClickHouse", 2*time.Minute, func() error {
		answer, err := http.Get(c.URL() + "/ping")
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// Kill kills the server with SIGKILL.
func (c *ClickHouse) Kill() {
	if c.srv == nil {
		return
	}
	c.srv.stop(syscall.SIGKILL, time.Minute)
	c.srv = nil
	if c.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		c.t.Logf("ClickHouse: %s", log[max(0, len(log)-2000):])
	}
}

// Lose kills the server and removes all that it has, as when its machine is lost. A server that
// starts then is a new machine in its place.
func (c *ClickHouse) Lose() {
	c.t.Helper()
	c.Kill()
	if err := os.RemoveAll(c.Data()); err != nil {
		c.t.Fatal(err)
	}
}

// Freeze stops the server, and Thaw has it go on.
func (c *ClickHouse) Freeze() { _ = c.srv.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw has a server go on that Freeze has stopped.
func (c *ClickHouse) Thaw() { _ = c.srv.cmd.Process.Signal(syscall.SIGCONT) }

// Query returns the answer to a statement in columns with tabs between.
func (c *ClickHouse) Query(statement string) (string, error) {
	q, err := http.NewRequest(http.MethodPost, c.URL()+"/?wait_end_of_query=1", strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	q.Header.Set("X-ClickHouse-User", "default")
	q.Header.Set("X-ClickHouse-Key", c.Password)
	answer, err := (&http.Client{Timeout: 2 * time.Minute}).Do(q)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", statement, answer.Status, text)
	}
	return strings.TrimSuffix(string(text), "\n"), err
}

// MustQuery is Query of a server that answers.
func (c *ClickHouse) MustQuery(statement string) string {
	c.t.Helper()
	text, err := c.Query(statement)
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}
