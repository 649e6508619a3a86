package source

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/intake"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// config is the evaluated config block.
type config struct {
	setting.Sacct

	filter   setting.Filter
	earliest time.Time // zero: all that there is

	socket  string
	uids    []int // who may write to it
	listen  string
	keys    *identity.Keys // with listen
	clients []string       // names of certificates

	dir   string
	keep  time.Duration
	delay time.Duration
	wait  time.Duration
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config, own int) config {
	c := config{
		Sacct:    setting.ReadSacct(cfg),
		filter:   setting.ReadFilter(cfg),
		earliest: setting.ReadEarliest(cfg),
		socket:   cfg.String("socket", "/run/bursar-agent/epilog.sock"),
		dir:      cfg.String("state_dir", cfg.DataDir),
		keep:     setting.Duration(cfg, "keep", 3*24*time.Hour, time.Minute, 366*24*time.Hour),
		delay:    setting.Duration(cfg, "delay", 5*time.Second, 0, time.Hour),
		wait:     setting.Duration(cfg, "wait", time.Hour, time.Second, 30*24*time.Hour),
	}
	if c.socket != "" {
		setting.Absolute(cfg, "socket", c.socket)
	}
	if cfg.Has("state_dir") {
		setting.Absolute(cfg, "state_dir", c.dir)
	}
	c.readUsers(cfg, own)
	c.readListen(cfg)
	if c.socket == "" && c.listen == "" {
		cfg.Errorf("socket", "it is empty and there is no listen: no epilog could reach the source")
	}
	return c
}

// readUsers reads whose processes may write to the socket. The plugin's own may.
func (c *config) readUsers(cfg *sdk.Config, own int) {
	names := cfg.Strings("socket_users", []string{"root", "slurm"})
	uids, unknown := intake.LookupUIDs(names)
	c.uids = append(uids, own)
	if !cfg.Has("socket_users") {
		return // a machine need not have a user slurm
	}
	for i, name := range names {
		if slices.Contains(unknown, name) {
			cfg.ElementErrorf("socket_users", i, "%q is no user of this machine's /etc/passwd; one of a directory is given by number", name)
		}
	}
}

func (c *config) readListen(cfg *sdk.Config) {
	c.listen = cfg.String("listen", "")
	c.clients = cfg.Strings("listen_clients", []string{"bursar-epilog"})
	tls := cfg.Block("tls")
	files := identity.Files{CA: tls.String("ca", ""), Cert: tls.String("cert", ""), Key: tls.String("key", "")}
	switch {
	case c.listen == "" && tls != nil:
		cfg.Errorf("listen", "there is a tls block and no address to listen on, for example listen = \"0.0.0.0:7071\"")
	case c.listen == "":
		return
	case tls == nil:
		cfg.Errorf("listen", "it needs a block tls { ca, cert, key }: who tells of jobs is known by a certificate")
		return
	}
	if _, port, err := net.SplitHostPort(c.listen); err != nil || port == "" {
		cfg.Errorf("listen", "%q is no address; want host:port, for example \"0.0.0.0:7071\"", c.listen)
	}
	tls.Require("ca", "cert", "key")
	for name, path := range map[string]string{"ca": files.CA, "cert": files.Cert, "key": files.Key} {
		if path == "" {
			return
		}
		if !filepath.IsAbs(path) {
			tls.Errorf(name, "%q is no absolute path", path)
			return
		}
	}
	for i, name := range c.clients {
		if strings.TrimSpace(name) == "" {
			cfg.ElementErrorf("listen_clients", i, "a certificate without a name lets nobody in")
		}
	}
	var err error
	if c.keys, err = identity.Load(files); err != nil {
		tls.Errorf("cert", "%s", err)
	}
}
