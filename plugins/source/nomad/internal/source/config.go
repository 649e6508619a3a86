package source

import (
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// config is the evaluated config block.
type config struct {
	server  nomad.Config
	filter  filter
	owner   run.Owner
	ends    run.Ends
	running bool

	earliest time.Time
	list     time.Duration // between two listings
	lag      time.Duration
	kept     time.Duration // how long Nomad keeps what is over, at least
	remember time.Duration

	facts map[string]time.Duration // that are told, with how often at most
	queue string                   // what a queue of the census is
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	c := config{
		server:   readServer(cfg),
		filter:   readFilter(cfg),
		owner:    run.Owner{ID: cfg.String("owner", "owner"), Name: cfg.String("owner_name", "owner_name"), Email: cfg.String("owner_email", "owner_email")},
		running:  cfg.Bool("running", true),
		earliest: cfg.Time("earliest", time.Time{}),
		list:     duration(cfg, "list_interval", time.Minute, 100*time.Millisecond, time.Hour),
		lag:      duration(cfg, "lag", time.Minute, 0, 24*time.Hour),
		kept:     duration(cfg, "kept", time.Hour, 0, 366*24*time.Hour),
		remember: duration(cfg, "remember", 31*24*time.Hour, time.Hour, 366*24*time.Hour),
		queue:    cfg.Enum("queue", "namespace", "namespace", "node_pool"),
	}
	c.ends.AtDisconnect = cfg.Enum("lost", "bill", "bill", "disconnect") == "disconnect"
	c.readFacts(cfg)
	return c
}

func readServer(cfg *sdk.Config) nomad.Config {
	c := nomad.Config{
		Address: cfg.String("address", env("NOMAD_ADDR", "http://127.0.0.1:4646")),
		Region:  cfg.String("region", env("NOMAD_REGION", "")),
		Token:   cfg.Secret("token").Reveal(),
		Files: nomad.Files{
			Token:      cfg.String("token_file", ""),
			CA:         cfg.String("ca", env("NOMAD_CACERT", "")),
			Cert:       cfg.String("cert", env("NOMAD_CLIENT_CERT", "")),
			Key:        cfg.String("key", env("NOMAD_CLIENT_KEY", "")),
			ServerName: cfg.String("tls_server_name", env("NOMAD_TLS_SERVER_NAME", "")),
		},
		Timeout: duration(cfg, "timeout", time.Minute, time.Second, time.Hour),
		PerPage: int32(cfg.Int("per_page", 500)),
	}
	if !cfg.Has("token") {
		c.Token = env("NOMAD_TOKEN", "")
	}
	if cfg.Has("token") && c.Files.Token != "" {
		cfg.Errorf("token_file", "there is a token already; one of token and token_file is enough")
	}
	if c.PerPage < 1 || c.PerPage > 10_000 {
		cfg.Errorf("per_page", "%d is out of range; allowed is 1 to 10000", c.PerPage)
	}
	if (c.Files.Cert == "") != (c.Files.Key == "") {
		cfg.Errorf("cert", "a certificate needs its key, and a key its certificate: set both of cert and key")
	}
	if u, err := url.Parse(c.Address); err != nil || !slices.Contains([]string{"http", "https", "unix"}, u.Scheme) {
		cfg.Errorf("address", "%q is no address; expected something like \"https://nomad.example.org:4646\"", c.Address)
	} else if u.Scheme == "http" && (c.Files.CA != "" || c.Files.Cert != "") {
		cfg.Warnf("address", "is http, so the certificates are not used; expected https")
	}
	return c
}

func env(name, def string) string {
	if s := os.Getenv(name); s != "" {
		return s
	}
	return def
}

// readFacts reads what is told beside jobs.
func (c *config) readFacts(cfg *sdk.Config) {
	wanted := map[string]bool{capacity: cfg.Bool("capacity", true), census: cfg.Bool("census", true), directory: cfg.Bool("directory", true)}
	every := map[string]time.Duration{
		capacity:  duration(cfg, "capacity_interval", 10*time.Minute, 0, 24*time.Hour),
		census:    duration(cfg, "census_interval", time.Minute, 0, 24*time.Hour),
		directory: duration(cfg, "directory_interval", 10*time.Minute, 0, 24*time.Hour),
	}
	c.facts = map[string]time.Duration{}
	for name, on := range wanted {
		if on {
			c.facts[name] = every[name]
		}
	}
}

func duration(cfg *sdk.Config, name string, def, least, most time.Duration) time.Duration {
	d := cfg.Duration(name, def)
	if d < least || d > most {
		cfg.Errorf(name, "%s is out of range; allowed is %s to %s", d, least, most)
	}
	return d
}

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	namespaces, notNamespaces patterns
	jobs, notJobs             patterns
	pools                     patterns
}

func readFilter(cfg *sdk.Config) filter {
	return filter{
		namespaces: readPatterns(cfg, "namespaces"), notNamespaces: readPatterns(cfg, "exclude_namespaces"),
		jobs: readPatterns(cfg, "jobs"), notJobs: readPatterns(cfg, "exclude_jobs"),
		pools: readPatterns(cfg, "node_pools"),
	}
}

// wants applies the filter to a run's namespace, job and node pool.
func (f *filter) wants(namespace, job, pool string) bool {
	return f.namespaces.take(namespace) && !f.notNamespaces.match(namespace) &&
		f.jobs.take(job) && !f.notJobs.match(job) && f.pools.take(pool)
}

// patterns are texts in which * stands for any text and ? for any character.
type patterns []*regexp.Regexp

func readPatterns(cfg *sdk.Config, name string) patterns {
	var out patterns
	for i, s := range cfg.Strings(name, nil) {
		p, err := pattern(s)
		if err != nil {
			cfg.ElementErrorf(name, i, "%s", err)
			continue
		}
		out = append(out, p)
	}
	return out
}

func pattern(s string) (*regexp.Regexp, error) {
	if s == "" {
		return nil, errors.New("an empty text is no name")
	}
	text := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(s))
	return regexp.Compile("(?s)^" + text + "$")
}

func (p patterns) match(s string) bool {
	return slices.ContainsFunc(p, func(r *regexp.Regexp) bool { return r.MatchString(s) })
}

// take is match, and true when there are no patterns.
func (p patterns) take(s string) bool { return len(p) == 0 || p.match(s) }
