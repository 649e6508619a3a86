package source

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// settings are what the config block says.
type settings struct {
	listen      string
	socket      string         // where listen is empty
	uids        []int          // of the processes that may push by the socket
	keys        *identity.Keys // nil: plain HTTP
	writers     []string
	hosts       []string
	kinds       record.Kinds
	maxBody     int64
	patience    time.Duration
	remember    time.Duration
	ignoreKnown bool
	file        string // of the known ids
}

// The defaults, and bounds.
const (
	defaultSocket   = "/run/bursar-agent/receiver.sock"
	defaultMaxBody  = 8 << 20
	minMaxBody      = 64 << 10
	maxMaxBody      = sdk.MaxPushed
	defaultPatience = 25 * time.Second // a little less than AUDITOR's clients have
	minPatience     = time.Second
	maxPatience     = 10 * time.Minute
	defaultRemember = 400 * 24 * time.Hour
	minRemember     = 24 * time.Hour
)

func read(cfg *sdk.Config) (settings, error) {
	s := settings{
		listen:      cfg.String("listen", ""),
		writers:     cfg.Strings("writers", nil),
		hosts:       cfg.Strings("hosts", nil),
		maxBody:     cfg.Size("max_body", defaultMaxBody),
		patience:    cfg.Duration("patience", defaultPatience),
		remember:    cfg.Duration("remember", defaultRemember),
		ignoreKnown: cfg.Bool("ignore_record_exists_error", false),
	}
	tls := cfg.Block("tls")
	if tls != nil {
		s.keys = readKeys(cfg, tls)
	}
	s.readSocket(cfg)
	atRisk := cfg.Bool("allow_local_users", false)
	host, port, err := net.SplitHostPort(s.listen)
	switch {
	case s.listen == "" && tls == nil && !cfg.Has("listen"): // the socket
	case err != nil || port == "":
		cfg.Errorf("listen", "%q is no address; write one such as \"127.0.0.1:8000\"", s.listen)
	case tls == nil && !loopback(host):
		cfg.Errorf("listen", "%q is not on loopback: without certificates, anybody who can reach it could write records; add a tls block", s.listen)
	case tls == nil && !atRisk:
		cfg.Errorf("listen", "every user of this machine could push records to %s: add a tls block, use the socket by leaving listen out, or accept it with allow_local_users = true", s.listen)
	}
	if tls == nil && cfg.Has("writers") {
		cfg.Errorf("writers", "names in certificates mean nothing without a tls block")
	}
	if slices.Contains(s.writers, "") {
		cfg.Errorf("writers", "a name is empty")
	}
	s.kinds = auditor.Kinds(readKinds(cfg))
	s.bounds(cfg)
	return s, cfg.Err()
}

func (s *settings) bounds(cfg *sdk.Config) {
	if s.maxBody < minMaxBody || s.maxBody > maxMaxBody {
		cfg.Errorf("max_body", "%d bytes are not from 64KiB to 12MiB", s.maxBody)
	}
	if s.patience < minPatience || s.patience > maxPatience {
		cfg.Errorf("patience", "%s is not from %s to %s", s.patience, minPatience, maxPatience)
	}
	if s.remember < minRemember {
		cfg.Errorf("remember", "%s is less than a day", s.remember)
	}
}

// readSocket reads where processes of this machine push, and whose may. The plugin's own
// user may.
func (s *settings) readSocket(cfg *sdk.Config) {
	s.socket, s.uids = cfg.String("socket", defaultSocket), []int{os.Geteuid()}
	if !filepath.IsAbs(s.socket) {
		cfg.Errorf("socket", "%q must be an absolute path", s.socket)
	}
	for i, name := range cfg.Strings("socket_users", []string{"root"}) {
		text := name
		if u, err := user.Lookup(name); err == nil {
			text = u.Uid
		}
		uid, err := strconv.Atoi(text)
		if err != nil || uid < 0 {
			cfg.ElementErrorf("socket_users", i, "user %q not found on this machine; give users of a directory service by number", name)
			continue
		}
		s.uids = append(s.uids, uid)
	}
}

// readKinds reads the component blocks: what the amounts of components are whose
// names do not say it.
func readKinds(cfg *sdk.Config) record.Kinds {
	kinds := record.Kinds{}
	for _, block := range cfg.Blocks("component") {
		block.Require("kind")
		kind, _ := record.ParseKind(block.Enum("kind", record.Rate.String(), record.Rate.String(), record.Total.String()))
		labels := block.Labels()
		if len(labels) != 1 || labels[0] == "" {
			block.Errorf("component", "a component block needs one name, as in component \"cpu\" { kind = \"total\" }")
			continue
		}
		if _, twice := kinds[labels[0]]; twice {
			block.Errorf("component", "component %q given more than once", labels[0])
		}
		kinds[labels[0]] = kind
	}
	return kinds
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readKeys loads the certificates of the tls block, or the agent's own.
func readKeys(cfg *sdk.Config, tls *sdk.Body) *identity.Keys {
	files := identity.Files{CA: tls.String("ca", cfg.TLS.CA), Cert: tls.String("cert", cfg.TLS.Cert), Key: tls.String("key", cfg.TLS.Key)}
	if files.CA == "" || files.Cert == "" || files.Key == "" {
		tls.Errorf("ca", "ca, cert and key must be set, because the agent has no certificates of its own")
		return nil
	}
	if tls.Has("cert") != tls.Has("key") {
		tls.Errorf("cert", "cert and key belong together")
		return nil
	}
	keys, err := identity.Load(files)
	if err != nil {
		tls.Errorf("cert", "%v", err)
		return nil
	}
	return keys
}
