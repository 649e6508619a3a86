package source

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// settings are those of the config block.
type settings struct {
	Address       string        `hcl:"address,optional" unset:"NOMAD_ADDR, or http://127.0.0.1:4646" doc:"address of a server or of an agent that forwards: http://, https:// or unix://"`
	Region        string        `hcl:"region,optional" unset:"NOMAD_REGION, or the agent's" doc:"region"`
	Token         hcl.String    `hcl:"token,optional" unset:"NOMAD_TOKEN" doc:"ACL token; better from a file"`
	TokenFile     string        `hcl:"token_file,optional" unset:"none" doc:"file with the token; it is read again when it changes"`
	CA            string        `hcl:"ca,optional" unset:"NOMAD_CACERT, or the machine's" doc:"authorities that the server is trusted by (PEM)"`
	Cert          string        `hcl:"cert,optional" unset:"NOMAD_CLIENT_CERT" doc:"certificate of this client; the files are read again when they change"`
	Key           string        `hcl:"key,optional" unset:"NOMAD_CLIENT_KEY" doc:"its key"`
	TLSServerName string        `hcl:"tls_server_name,optional" unset:"NOMAD_TLS_SERVER_NAME, or the address's" doc:"name that the server's certificate must have, for example server.global.nomad"`
	Timeout       time.Duration `hcl:"timeout,optional" default:"1m" min:"1s" max:"1h" doc:"how long one answer may take"`
	PerPage       int32         `hcl:"per_page,optional" default:"500" min:"1" max:"10000" doc:"objects of a listing in one answer"`
	ListInterval  time.Duration `hcl:"list_interval,optional" default:"1m" min:"100ms" max:"1h" doc:"how often all allocations are listed"`

	filter

	Owner      string        `hcl:"owner,optional" default:"owner" doc:"key of the job's meta with the id of its owner"`
	OwnerName  string        `hcl:"owner_name,optional" default:"owner_name" doc:"key of the job's meta with the owner's name"`
	OwnerEmail string        `hcl:"owner_email,optional" default:"owner_email" doc:"key of the job's meta with the owner's address"`
	Running    bool          `hcl:"running,optional" default:"true" doc:"send what runs as open records"`
	Earliest   hcl.Time      `hcl:"earliest,optional" unset:"all that there is" doc:"only runs that end at this time or later"`
	Lost       string        `hcl:"lost,optional" default:"bill" allowed:"bill disconnect" doc:"when a run ends whose node cannot be reached: when Nomad gives it up (bill), or when it was last reached (disconnect). What the node says when it comes back replaces both, once the run has ended"`
	Lag        time.Duration `hcl:"lag,optional" default:"1m" max:"24h" doc:"how long a node may take to tell the server; the source says that it is complete up to so long before its last listing"`
	Kept       time.Duration `hcl:"kept,optional" default:"1h" max:"366d" doc:"how long Nomad keeps finished allocations at least (the least of its *_gc_thresholds); a longer absence of the agent is reported as a gap"`
	Remember   time.Duration `hcl:"remember,optional" default:"31d" min:"1h" max:"366d" doc:"how long the source keeps allocations that Nomad has forgotten, some 1.5 kB each, for collecting a window again and for the comparison of past days with what there is: longer than the agent's retain"`
	Queue      string        `hcl:"queue,optional" default:"namespace" allowed:"namespace node_pool" doc:"what a queue of the census is"`

	Capacity          bool          `hcl:"capacity,optional" default:"true" doc:"tell what the nodes have"`
	CapacityInterval  time.Duration `hcl:"capacity_interval,optional" default:"10m" max:"24h" doc:"how often"`
	Census            bool          `hcl:"census,optional" default:"true" doc:"tell how many allocations of whom run and wait"`
	CensusInterval    time.Duration `hcl:"census_interval,optional" default:"1m" max:"24h" doc:"how often"`
	Directory         bool          `hcl:"directory,optional" default:"true" doc:"tell names and addresses of the owners"`
	DirectoryInterval time.Duration `hcl:"directory_interval,optional" default:"10m" max:"24h" doc:"how often"`
}

// config is the evaluated config block.
type config struct {
	settings

	server nomad.Config
	owner  run.Owner
	ends   run.Ends
	facts  map[string]time.Duration // that are told, with how often at most
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	c := config{facts: map[string]time.Duration{}}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.server = c.readServer(cfg)
	c.owner = run.Owner{ID: c.Owner, Name: c.OwnerName, Email: c.OwnerEmail}
	c.ends.AtDisconnect = c.Lost == "disconnect"
	if c.Capacity {
		c.facts[facts.Capacity] = c.CapacityInterval
	}
	if c.Census {
		c.facts[facts.Census] = c.CensusInterval
	}
	if c.Directory {
		c.facts[facts.Directory] = c.DirectoryInterval
	}
	return c
}

func (s *settings) readServer(cfg *sdk.Config) nomad.Config {
	or := func(text, name string) string { return cmp.Or(text, os.Getenv(name)) }
	c := nomad.Config{
		Address: cmp.Or(or(s.Address, "NOMAD_ADDR"), "http://127.0.0.1:4646"),
		Region:  or(s.Region, "NOMAD_REGION"),
		Token:   s.Token.Value,
		Files: nomad.Files{
			Token: s.TokenFile, CA: or(s.CA, "NOMAD_CACERT"), Cert: or(s.Cert, "NOMAD_CLIENT_CERT"), Key: or(s.Key, "NOMAD_CLIENT_KEY"),
			ServerName: or(s.TLSServerName, "NOMAD_TLS_SERVER_NAME"),
		},
		Timeout: s.Timeout,
		PerPage: s.PerPage,
	}
	if !cfg.Has("token") {
		c.Token = os.Getenv("NOMAD_TOKEN")
	}
	if cfg.Has("token") && c.Files.Token != "" {
		cfg.Errorf("token_file", "there is a token already; one of token and token_file is enough")
	}
	if (c.Files.Cert == "") != (c.Files.Key == "") {
		cfg.Errorf("cert", "a certificate needs its key, and a key its certificate: set both of cert and key")
	}
	if u, err := url.Parse(c.Address); err != nil || !slices.Contains([]string{"http", "https", "unix"}, u.Scheme) {
		cfg.Errorf("address", "%q is not an address; expected something like \"https://nomad.example.org:4646\"", c.Address)
	} else if u.Scheme == "http" && (c.Files.CA != "" || c.Files.Cert != "") {
		cfg.Warnf("address", "is http, so the certificates are not used; expected https")
	}
	return c
}

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	Namespaces    hcl.List[pattern] `hcl:"namespaces,optional" unset:"all" doc:"only runs in namespaces that match one of these patterns"`
	NotNamespaces hcl.List[pattern] `hcl:"exclude_namespaces,optional" unset:"none" doc:"no runs in namespaces that match one of these patterns"`
	Jobs          hcl.List[pattern] `hcl:"jobs,optional" unset:"all" doc:"only runs of jobs whose name matches one of these patterns, for example [\"module-*\", \"tool-*\"]"`
	NotJobs       hcl.List[pattern] `hcl:"exclude_jobs,optional" unset:"none" doc:"no runs of jobs whose name matches one of these patterns"`
	Pools         hcl.List[pattern] `hcl:"node_pools,optional" unset:"all" doc:"only runs on nodes, and capacity of nodes, in pools that match one of these patterns"`
}

// wantsJob applies the filter to a run's namespace, job and node pool.
func (f *filter) wantsJob(namespace, job, pool string) bool {
	return allowedBy(f.Namespaces, namespace) && !matchesAny(f.NotNamespaces, namespace) &&
		allowedBy(f.Jobs, job) && !matchesAny(f.NotJobs, job) && allowedBy(f.Pools, pool)
}

// pattern is a text in which * stands for any text and ? for any character.
type pattern struct{ *regexp.Regexp }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *pattern) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		return errors.New("a name cannot be empty")
	}
	p.Regexp, err = regexp.Compile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(string(text))) + "$")
	return err
}

func matchesAny(list []pattern, s string) bool {
	return slices.ContainsFunc(list, func(r pattern) bool { return r.MatchString(s) })
}

// allowedBy is matchesAny, and true when there are no patterns.
func allowedBy(list []pattern, s string) bool { return len(list) == 0 || matchesAny(list, s) }
