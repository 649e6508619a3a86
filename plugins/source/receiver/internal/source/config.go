package source

import (
	"cmp"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/record"
)

// document are the settings of the config block.
type document struct {
	Listen          string        `hcl:"listen,optional" unset:"none" doc:"where clients push. Without a tls block only an address on loopback is taken, and only with allow_local_users"`
	AllowLocalUsers bool          `hcl:"allow_local_users,optional" doc:"accepts that every user of this machine can push records to a listen without tls"`
	Socket          hcl.Absolute  `hcl:"socket,optional" default:"/run/bursar-agent/receiver.sock" doc:"the unix socket that is there without listen; a second source needs another one"`
	SocketUsers     hcl.Strings   `hcl:"socket_users,optional" default:"[\"root\"]" doc:"whose processes can push by the socket, by name or number, as the kernel knows them; beside the agent's own user"`
	Writers         hcl.Strings   `hcl:"writers,optional" doc:"names in certificates that may write, beside those that carry the role write (bursar tls cert create -role client … -roles write). [\"*\"] is every client's certificate of the CA, as AUDITOR's use_tls: true without RBAC"`
	Hosts           hcl.Strings   `hcl:"hosts,optional" doc:"names of this machine under which clients reach a listener without tls, beside localhost, the loopback addresses and the one in listen. A request with another Host, or from a page of another site, is not answered, so that no web page can push"`
	MaxBody         hcl.Size      `hcl:"max_body,optional" default:"8MiB" min:"64KiB" max:"12MiB" doc:"the largest body, decompressed (AUDITOR: 2 MiB)"`
	Patience        time.Duration `hcl:"patience,optional" default:"25s" min:"1s" max:"10m" doc:"how long a push waits before its connection is broken off; less than the clients' own timeout, which is 30 s"`
	Remember        time.Duration `hcl:"remember,optional" default:"400d" min:"24h" doc:"for how long at least a second push of an id is refused"`
	IgnoreKnown     bool          `hcl:"ignore_record_exists_error,optional" doc:"as AUDITOR's: a known record is answered with 200 and a warning, and of a bulk the others are taken. AUDITOR's HTCondor collector needs it, since it stops at a refusal"`
	TLS             *struct {
		CA   string `hcl:"ca,optional" unset:"the agent's own" doc:"authorities of clients' certificates"`
		Cert string `hcl:"cert,optional" unset:"the agent's own" doc:"for the host name that clients use"`
		Key  string `hcl:"key,optional" unset:"the agent's own" doc:"its key"`
	} `hcl:"tls,block" doc:"clients prove who they are by mutual TLS; PEM files. Renewed files are taken up without a restart"`
	Components []struct {
		Name string `hcl:"name,label"`
		Kind string `hcl:"kind" allowed:"rate total" doc:"what the component's amount is, where its name does not say it"`
	} `hcl:"component,block"`
}

// settings are what the config block says.
type settings struct {
	document

	socket string         // where listen is empty
	uids   []int          // of the processes that may push by the socket
	keys   *identity.Keys // nil: plain HTTP
	kinds  record.Kinds
	file   string // of the known ids
}

func readSettings(cfg *sdk.Config) (settings, error) {
	var s settings
	_ = cfg.Decode(&s.document) // it is in what Err returns
	s.socket = string(s.Socket)
	if s.TLS != nil {
		s.keys = s.readKeys(cfg)
	}
	s.readUsers(cfg)
	host, port, err := net.SplitHostPort(s.Listen)
	switch {
	case s.Listen == "" && s.TLS == nil && !cfg.Has("listen"):
		cfg.CheckSocket("socket", s.socket)
	case err != nil || port == "":
		cfg.Errorf("listen", "%q is not an address; write one such as \"127.0.0.1:8000\"", s.Listen)
	case s.TLS == nil && !local.IsLoopback(host):
		cfg.Errorf("listen", "%q is not on loopback: without certificates, anybody who can reach it could write records; add a tls block", s.Listen)
	case s.TLS == nil && !s.AllowLocalUsers:
		cfg.Errorf("listen", "every user of this machine could push records to %s: add a tls block, use the socket by leaving listen out, or accept it with allow_local_users = true", s.Listen)
	default:
		cfg.CheckListen("listen", s.Listen)
	}
	if s.TLS == nil && cfg.Has("writers") {
		cfg.Errorf("writers", "names in certificates mean nothing without a tls block")
	}
	if slices.Contains(s.Writers, "") {
		cfg.Errorf("writers", "a name is empty")
	}
	kinds := record.Kinds{}
	for _, c := range s.Components {
		kinds[c.Name], _ = record.ParseKind(c.Kind) // what is none has been reported
	}
	s.kinds = auditor.Kinds(kinds)
	return s, cfg.Err()
}

// readUsers reads whose processes of this machine may push. The plugin's own user may.
func (s *settings) readUsers(cfg *sdk.Config) {
	s.uids = []int{os.Geteuid()}
	for i, name := range s.SocketUsers {
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

// readKeys loads the certificates of the tls block, or the agent's own.
func (s *settings) readKeys(cfg *sdk.Config) *identity.Keys {
	tls := cfg.Block("tls")
	files := identity.Files{CA: cmp.Or(s.TLS.CA, cfg.TLS.CA), Cert: cmp.Or(s.TLS.Cert, cfg.TLS.Cert), Key: cmp.Or(s.TLS.Key, cfg.TLS.Key)}
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
		tls.Errorf("cert", "%v", hcl.FileError(err))
		return nil
	}
	return keys
}
