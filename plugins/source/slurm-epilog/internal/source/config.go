package source

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/intake"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// settings are those of the config block.
type settings struct {
	Socket      hcl.Absolute `hcl:"socket,optional" default:"/run/bursar-agent/epilog.sock" doc:"unix socket for processes on this machine; \"\" for none. A second source needs another one"`
	SocketUsers hcl.Strings  `hcl:"socket_users,optional" default:"[\"root\", \"slurm\"]" doc:"whose processes may tell of jobs by the socket, by name or number, as the kernel knows them; beside the agent's own"`
	Listen      string       `hcl:"listen,optional" unset:"none" doc:"host:port for other machines; needs tls"`
	TLS         *struct {
		CA   hcl.Absolute `hcl:"ca"`
		Cert hcl.Absolute `hcl:"cert"`
		Key  hcl.Absolute `hcl:"key"`
	} `hcl:"tls,block" doc:"paths of the agent's certificates"`
	ListenClients hcl.Strings   `hcl:"listen_clients,optional" default:"[\"bursar-epilog\"]" doc:"certificate names that may report jobs"`
	StateDir      hcl.Absolute  `hcl:"state_dir,optional" unset:"a folder in the agent's data_dir" doc:"folder of the journal"`
	Keep          time.Duration `hcl:"keep,optional" default:"3d" min:"1m" max:"366d" doc:"how long reports are kept after their record is safe, for bursar-agent recollect and for a cluster that was restored from a backup"`
	Delay         time.Duration `hcl:"delay,optional" default:"5s" max:"1h" doc:"how long sacct is not asked after an epilog came, so that slurmdbd has the end and one question does for many jobs"`
	Wait          time.Duration `hcl:"wait,optional" default:"1h" min:"1s" max:"30d" doc:"how long slurmdbd may answer without the run's end before the epilog is believed"`

	setting.Sacct
	setting.Filter
}

// config is the evaluated config block.
type config struct {
	settings

	uids []int          // who may write to it
	keys *identity.Keys // with listen
	dir  string
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config, own int) config {
	var c config
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.Sacct.Check(cfg)
	c.Filter.Check(cfg)
	c.dir = cmp.Or(string(c.StateDir), cfg.DataDir)
	c.readUsers(cfg, own)
	c.readListen(cfg)
	switch {
	case c.Socket != "":
		cfg.CheckSocket("socket", string(c.Socket))
	case c.Listen == "":
		cfg.Errorf("socket", "it is empty and there is no listen: no epilog could reach the source")
	}
	return c
}

// readUsers reads whose processes may write to the socket. The plugin's own may.
func (c *config) readUsers(cfg *sdk.Config, own int) {
	uids, unknown := intake.LookupUIDs(c.SocketUsers)
	c.uids = append(uids, own)
	if !cfg.Has("socket_users") {
		return // a machine need not have a user slurm
	}
	for i, name := range c.SocketUsers {
		if slices.Contains(unknown, name) {
			cfg.ElementErrorf("socket_users", i, "%q is not a user of this machine's /etc/passwd; one of a directory is given by number", name)
		}
	}
}

func (c *config) readListen(cfg *sdk.Config) {
	tls := cfg.Block("tls")
	switch {
	case c.Listen == "" && tls != nil:
		cfg.Errorf("listen", "there is a tls block and no address to listen on, for example listen = \"0.0.0.0:7071\"")
	case c.Listen == "":
		return
	case tls == nil:
		cfg.Errorf("listen", "a block tls { ca, cert, key } is missing: clients that report jobs identify themselves by certificates")
		return
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		cfg.Errorf("listen", "%q is not an address; want host:port, for example \"0.0.0.0:7071\"", c.Listen)
	} else {
		cfg.CheckListen("listen", c.Listen)
	}
	for i, name := range c.ListenClients {
		if strings.TrimSpace(name) == "" {
			cfg.ElementErrorf("listen_clients", i, "the name is empty")
		}
	}
	files := identity.Files{CA: string(c.TLS.CA), Cert: string(c.TLS.Cert), Key: string(c.TLS.Key)}
	if files.CA == "" || files.Cert == "" || files.Key == "" {
		if cfg.Err() == nil {
			tls.Errorf("ca", "ca, cert and key must be set")
		}
		return
	}
	var err error
	if c.keys, err = identity.Load(files); err != nil {
		tls.Errorf("cert", "%s", err)
	}
}
