package main

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/post"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// settings are those of the config block.
type settings struct {
	URL          string        `hcl:"url" doc:"the HTTP interface of the ClickHouse server that keeps this site, such as \"https://ch1.example.org:8443\"; http only to this machine, unless allow_plain is set"`
	User         string        `hcl:"user,optional" default:"default" doc:"the account; it reads, inserts, creates tables and views, alters settings of these tables and drops partitions"`
	PasswordFile hcl.Absolute  `hcl:"password_file,optional" unset:"no password" doc:"a file with its password; read anew for each run"`
	CA           hcl.Absolute  `hcl:"ca,optional" unset:"those of the system" doc:"a PEM file of the authorities to trust"`
	AllowPlain   bool          `hcl:"allow_plain,optional" doc:"http to other machines: everyone on the way can read the records and the password"`
	Timeout      time.Duration `hcl:"timeout,optional" default:"2m" min:"1s" max:"10m" doc:"for each request"`
	Database     string        `hcl:"database,optional" default:"bursar" doc:"the database of the tables; it is created if it is missing"`
	Cluster      string        `hcl:"cluster,optional" unset:"no tables over all shards" doc:"a cluster of the server's remote_servers: ledger_all, daily_all, monthly_all, running_now_all and usage_now_all read all its shards"`
	Replicas     hcl.Strings   `hcl:"replicas,optional" unset:"tables of one server" doc:"the HTTP interfaces of the other servers that keep this site: the tables are replicated, and each of them has a replica"`
	KeeperPath   string        `hcl:"keeper_path,optional" default:"/clickhouse/tables/{shard}" doc:"where replicas meet in ZooKeeper or ClickHouse Keeper; the database and the table follow, and a replica is called by the server's macro replica"`
	Dimensions   hcl.Strings   `hcl:"dimensions,optional" default:"[\"group_id\", \"user_id\"]" doc:"meta keys, each a column with the first value; the same for all sites of a database"`
	Components   hcl.Strings   `hcl:"components,optional" default:"[\"Cores\", \"TotalCPU\"]" doc:"components, each a column with amount × seconds of a rate and the amount of a total; with Cores, likewise the same"`
	Zone         string        `hcl:"zone,optional" default:"UTC" doc:"the time zone of the days and months, likewise the same"`
	Check        time.Duration `hcl:"check_every,optional" default:"24h" min:"1m" max:"60d" doc:"how often the sums of each month are compared with the cluster's"`
	Batch        int           `hcl:"batch,optional" default:"100000" min:"1" max:"500000" doc:"changes that are written at a time"`
}

// config is what the action's config block says.
type config struct {
	settings

	url      *url.URL
	replicas []*url.URL
	zone     *time.Location
	layout   layout
}

// columnName is what a dimension or a component is called, so that it needs no quotes in SQL.
var columnName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// readConfig reads the configuration and reports every problem.
func readConfig(cfg *sdk.Config) (config, error) {
	c := config{}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.url = readURL(c.URL, c.AllowPlain, func(text string) { cfg.Errorf("url", "%s", text) })
	c.readReplicas(cfg)
	var err error
	if c.zone, err = time.LoadLocation(c.Zone); err != nil || c.Zone == "Local" {
		cfg.Errorf("zone", "unknown time zone %q: use one like \"Europe/Berlin\"", c.Zone)
	}
	for name, text := range map[string]string{"database": c.Database, "cluster": c.Cluster} {
		if text != "" && !columnName.MatchString(text) {
			cfg.Errorf(name, "invalid name %q: use letters, digits and underscores", text)
		}
	}
	c.layout = layout{dimensions: c.Dimensions, components: c.Components, zone: c.Zone}
	c.checkColumns(cfg)
	return c, cfg.Err()
}

// readURL reads the address of a server, or says what is wrong with it.
func readURL(text string, plain bool, say func(string)) *url.URL {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "":
		say("invalid URL: use one like \"https://ch1.example.org:8443\"")
	case u.User != nil:
		say("the URL has a user: use user and password_file")
	case u.Scheme == "http" && !plain && !post.IsLoopback(u.Hostname()):
		say("http to another machine shows the records and the password to everyone on the way: use https, or set allow_plain")
	default:
		return u
	}
	return nil
}

// keeperPath is what a path of replicas is: texts and macros, so that it needs no quotes in SQL.
var keeperPath = regexp.MustCompile(`^(/[A-Za-z0-9_.{}-]+)+$`)

// readReplicas reads the other servers of the site, and where they meet.
func (c *config) readReplicas(cfg *sdk.Config) {
	hosts := map[string]bool{}
	if c.url != nil {
		hosts[c.url.Host] = true
	}
	for i, text := range c.Replicas {
		u := readURL(text, c.AllowPlain, func(text string) { cfg.ElementErrorf("replicas", i, "%s", text) })
		if u == nil {
			continue
		}
		if hosts[u.Host] {
			cfg.ElementErrorf("replicas", i, "the server %s is given more than once: a replica is on another one", u.Host)
		}
		hosts[u.Host] = true
		c.replicas = append(c.replicas, u)
	}
	switch {
	case !keeperPath.MatchString(c.KeeperPath):
		cfg.Errorf("keeper_path", "invalid path %q: use one like \"/clickhouse/tables/{shard}\"", c.KeeperPath)
	case c.Cluster != "" && len(c.Replicas) > 0 && !strings.Contains(c.KeeperPath, "{"):
		cfg.Errorf("keeper_path", "all shards would have the path %q: use a macro that differs by shard, like {shard}", c.KeeperPath)
	}
}

// replicated reports whether the tables have replicas.
func (c *config) replicated() bool { return len(c.Replicas) > 0 }

// checkColumns refuses names that two columns would have, and a list without the cores.
func (c *config) checkColumns(cfg *sdk.Config) {
	known := map[string]bool{}
	for _, column := range slices.Concat(layout{}.ledgerColumns(), layout{}.monthlyColumns(), layout{}.runningColumns(), []column{{name: runningTable}}) {
		known[column.name] = true
	}
	check := func(setting string, names []string) {
		for i, name := range names {
			switch {
			case !columnName.MatchString(name):
				cfg.ElementErrorf(setting, i, "invalid column %q: use a name of letters, digits and underscores", name)
			case known[name]:
				cfg.ElementErrorf(setting, i, "the column %q already exists: leave it out", name)
			}
			known[name] = true
		}
	}
	check("dimensions", c.Dimensions)
	check("components", c.Components)
	if len(c.Components) > maxComponents {
		cfg.Errorf("components", "%d components: at most %d are allowed", len(c.Components), maxComponents)
	}
	if !slices.Contains(c.Components, cores) {
		cfg.Errorf("components", "missing %q: by it the sums are compared with the cluster's", cores)
	}
}
