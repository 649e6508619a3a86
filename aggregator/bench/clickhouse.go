package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// clickhouse is a ClickHouse server of our own: Debian's 18.16, which e2e/setup.sh unpacks.
type clickhouse struct {
	process *process
	dir     string
	url     string
}

// errNoClickHouse is wrapped by the reason why there can be none.
var errNoClickHouse = errors.New("no ClickHouse 18.16")

// clickhouseRoot returns the folder with the files of Debian's packages.
func clickhouseRoot() (string, error) {
	cache := os.Getenv("BURSAR_E2E_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNoClickHouse, err)
		}
		cache = filepath.Join(base, "bursar-e2e")
	}
	root := filepath.Join(cache, "clickhouse-18.16.1")
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/clickhouse-server")); err != nil {
		return "", fmt.Errorf("%w: %w; e2e/setup.sh unpacks it", errNoClickHouse, err)
	}
	return root, nil
}

// startClickHouses starts servers with the cluster "shards", of which the first ones are the shards.
func (b *bench) startClickHouses(ctx context.Context, count, shards int) (list []*clickhouse, err error) {
	root, err := clickhouseRoot()
	if err != nil {
		return nil, err
	}
	ports := make([]string, 2*count) // of HTTP, and of the other servers
	for i := range ports {
		if err := freePorts(&ports[i]); err != nil {
			return nil, err
		}
		_, ports[i], _ = strings.Cut(ports[i], ":")
	}
	var cluster strings.Builder
	for i := range shards {
		fmt.Fprintf(&cluster, "<shard><replica><host>127.0.0.1</host><port>%s</port></replica></shard>", ports[2*i+1])
	}
	for i := range count {
		b.progress.beginPiece("starting ClickHouse")
		c := &clickhouse{dir: filepath.Join(b.dir, fmt.Sprint("clickhouse", i)), url: "http://127.0.0.1:" + ports[2*i]}
		list = append(list, c)
		if err := c.startServer(ctx, root, ports[2*i], ports[2*i+1], cluster.String()); err != nil {
			return list, err
		}
	}
	return list, nil
}

const (
	clickhouseUsers = `<yandex><profiles><default></default></profiles><quotas><default></default></quotas>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>
`
	clickhouseConfig = `<yandex><logger><level>warning</level><console>1</console></logger>
<listen_host>127.0.0.1</listen_host><http_port>%s</http_port><tcp_port>%s</tcp_port>
<path>%[3]s/data/</path><tmp_path>%[3]s/tmp/</tmp_path><users_config>%[3]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone><remote_servers><shards>%[4]s</shards></remote_servers></yandex>
`
)

// startServer starts the server with Debian's defaults, and waits until it answers.
func (c *clickhouse) startServer(ctx context.Context, root, http, tcp, cluster string) error {
	if err := os.MkdirAll(c.dir, 0o750); err != nil {
		return err
	}
	config := filepath.Join(c.dir, "config.xml")
	err := errors.Join(
		os.WriteFile(filepath.Join(c.dir, "users.xml"), []byte(clickhouseUsers), 0o600),
		os.WriteFile(config, fmt.Appendf(nil, clickhouseConfig, http, tcp, c.dir, cluster), 0o600))
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(root, "usr/sbin/clickhouse-server"), "--config-file="+config)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(root, "usr/lib/x86_64-linux-gnu")+":"+filepath.Join(root, "lib/x86_64-linux-gnu"))
	cmd.Dir = c.dir
	if c.process, err = startCommand(cmd); err != nil {
		return err
	}
	return pollUntil(ctx, c.process, func() bool { _, err := getText(ctx, c.url+"/ping"); return err == nil })
}

// queryRows returns the rows of a statement, each with its values.
func (c *clickhouse) queryRows(ctx context.Context, statement string) (rows [][]string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/?wait_end_of_query=1", strings.NewReader(statement))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("ClickHouse: %s: %s: %s", statement, resp.Status, text)
	}
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows, err
}

// queryOne returns the values of the one row of a statement; none when it has no row.
func (c *clickhouse) queryOne(ctx context.Context, statement string) ([]string, error) {
	rows, err := c.queryRows(ctx, statement)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}
