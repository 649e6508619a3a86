package convert

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// server converts the configuration of AUDITOR's server.
func (c *conversion) server(_ *Input, t tree) error {
	app, tls := t.at("application"), t.at("tls_config")
	secure := tls.at("use_tls").truth()
	hosts := cmp.Or(strings.Join(app.at("addr").texts(), " "), "127.0.0.1")
	port := app.at("port").or("8000")
	c.api(t, strings.Fields(hosts), port, secure)
	if secure {
		c.inside.open("tls")
		c.inside.text("ca", tls.at("ca_cert_path").text())
		c.inside.text("cert", tls.at("server_cert_path").text())
		c.inside.text("key", tls.at("server_key_path").text())
		c.inside.close()
		c.changed("tls_config", "any certificate serves", "the same; between agents and aggregators only those of bursar tls")
	}
	c.gauges(t.at("metrics", "database"))
	if level := t.at("log_level").text(); level != "" {
		c.inside.open("log")
		c.inside.text("level", strings.ReplaceAll(level, "trace", "debug"))
		c.inside.close()
	}
	c.archive(t.at("archival_config"))
	c.accessBlock(t.at("rbac_config"), secure)
	t.at("database", "password") // is not shown
	if db := t.at("database"); db.there() {
		c.inside.comment("The records of AUDITOR: bursar import auditor 'postgres://%s@%s:%s/%s' with the password in PGPASSWORD.",
			db.at("username").or("postgres"), db.at("host").or("localhost"), db.at("port").or("5432"), db.at("database_name").or("auditor"))
		db.at("require_ssl")
	}
	c.leftOver(&c.inside, t, map[string]string{
		"application.web_workers": "there are as many as processors", "environment": "there is one file, without profiles", "database": "bursar has its own store",
		"logging": "the journal keeps the log", "rbac_config.base_policies": "the roles read, write and monitor are fixed",
	})
	return nil
}

// api writes the listeners.
func (c *conversion) api(t tree, hosts []string, port string, secure bool) {
	var plain, remote, encrypted []string
	for _, h := range hosts {
		if ip := net.ParseIP(h); h != "localhost" && (ip == nil || !ip.IsLoopback()) {
			remote = append(remote, net.JoinHostPort(h, port))
		}
		plain = append(plain, net.JoinHostPort(h, port))
	}
	tls := t.at("tls_config")
	at := tls.at("https_addr").texts()
	if len(at) == 0 {
		at = hosts
	}
	for _, h := range at {
		encrypted = append(encrypted, net.JoinHostPort(h, tls.at("https_port").or("8443")))
	}
	b := &c.inside
	b.open("api")
	switch {
	case secure:
		b.comment("AUDITOR's plain port stayed open to everyone beside TLS. Here it answers /health_check on this machine.")
		b.texts("listen", []string{net.JoinHostPort("127.0.0.1", port)})
		b.texts("tls_listen", encrypted)
		c.changed("application.port beside TLS", "reads and writes without a certificate, from everywhere", "/health_check on this machine")
	case len(remote) > 0:
		b.texts("listen", plain)
		b.comment("Other machines reach it without a certificate, as with AUDITOR: keep a firewall before it. Name the host as clients do.")
		b.attr("allow_plain_remote", "true")
		b.comment("hosts = [%s]", quote("accounting.example.org"))
		c.changed("application.addr", "any name of the host in a request", "only those of hosts, addresses and localhost")
	default:
		b.texts("listen", plain)
	}
	if t.at("ignore_record_exists_error").truth() {
		b.attr("ignore_record_exists_error", "true")
		c.changed("ignore_record_exists_error", "new records of a bulk with a known one are lost", "they are stored")
	}
	b.close()
}

// gauges writes which counts /metrics has.
func (c *conversion) gauges(t tree) {
	all := t.at("metrics").texts()
	frequency := seconds(t.at("frequency"))
	if len(all) == 0 && frequency == "" {
		return
	}
	b := &c.inside
	b.open("metrics")
	b.text("frequency", frequency)
	for _, g := range []struct{ metric, key, attr, def string }{
		{"RecordCountPerSite", "meta_key_site", "site_meta_key", "site"},
		{"RecordCountPerGroup", "meta_key_group", "group_meta_key", "group"},
		{"RecordCountPerUser", "meta_key_user", "user_meta_key", "user"},
	} {
		if name := t.at(g.key).or(g.def); slices.Contains(all, g.metric) {
			b.text(g.attr, name)
			if name == g.def {
				b.comment("AUDITOR's default; bursar's sources and the Slurm collector write %s_id", g.def)
			}
		}
	}
	b.close()
}

// archive converts the archives of old months to an action that removes the same months.
func (c *conversion) archive(t tree) {
	if !t.there() {
		return
	}
	path, prefix := t.at("archive_path").text(), t.at("archive_file_prefix").or("auditor")
	c.inside.WriteString("\n")
	c.inside.comment("AUDITOR's archives: bursar import auditor '%s/%s_*.parquet'", cmp.Or(path, "."), prefix)
	b := &c.blocks
	b.open("action", "archive", "auditor")
	if schedule := cronLine(t.at("cron_schedule").text()); schedule != "" {
		b.text("schedule", schedule)
		b.text("zone", "UTC")
	} else {
		b.comment("cron_schedule: %s: it runs each night", t.at("cron_schedule").or("none"))
	}
	b.open("config")
	if !strings.HasPrefix(path, "/") {
		b.comment("In AUDITOR: %s", cmp.Or(path, "no archive_path"))
		path = "/srv/archive"
	}
	b.comment("A folder that is there, to which the aggregators can write; of several aggregators the same one, such as a mount.")
	b.text("directory", path)
	months, known := t.at("archive_older_than_months").number()
	switch {
	case !known || math.IsNaN(months):
		b.comment("AUDITOR says no archive_older_than_months: nothing is removed.")
	case months < 1:
		b.comment("In AUDITOR: %s; a month is the least.", t.at("archive_older_than_months").text())
		months = 1
		fallthrough
	default:
		b.attr("remove_after_months", strconv.FormatFloat(min(months, 1200), 'f', 0, 64))
	}
	b.close()
	b.close()
	b.WriteString("\n")
	b.comment("For programs that read AUDITOR's archives: the same months with its columns, in a folder of their own. Nothing is removed by this schema, since milliseconds cannot be restored exactly.")
	fmt.Fprintf(b, "# action \"archive\" \"columns\" {\n#   config {\n#     directory = %s\n#     schema    = \"auditor\"\n#   }\n# }\n", quote(strings.TrimRight(path, "/")+"-columns"))
	c.changed("archival_config", "old months leave the database, and cannot be asked for before a script restores them", "the same months leave the store; usage and ids stay, archived=true lists their records, bursar archive restore gives them back")
	c.changed("archival_config.cron_schedule", "and at each start; files are compared by the number of rows", "at these times; files are read back and compared before records are removed")
	c.changed("archival_config.archive_file_prefix", prefix+"_YEAR_MONTH.parquet, "+t.at("compression_type").or("Gzip")+", milliseconds", "year=YEAR/month=MONTH/records-….parquet, zstd, microseconds")
}

// cronWord is a field of a cron line that means the same with and without seconds.
var cronWord = regexp.MustCompile(`^[0-9*/,-]+$`)

// cronLine is a cron line without its seconds; "" where that has another meaning: weekdays
// have other numbers in each program.
func cronLine(text string) string {
	fields := strings.Fields(strings.ReplaceAll(text, "?", "*"))
	if len(fields) != 6 || fields[5] != "*" || slices.ContainsFunc(fields, func(f string) bool { return !cronWord.MatchString(f) }) {
		return ""
	}
	return strings.Join(fields[1:], " ")
}

// accessBlock writes the roles of clients.
func (c *conversion) accessBlock(t tree, secure bool) {
	b := &c.blocks
	b.open("access")
	defer b.close()
	switch {
	case !secure:
		b.comment("Whoever reaches a plain address reads, writes and gets /metrics, as with AUDITOR.")
		b.text("plain_role", "monitor,read,write")
		t.pairs()
	case !t.at("enforce_rbac").truth():
		b.comment("Every certificate of the authority reads, writes and gets /metrics, as with AUDITOR without RBAC.")
		b.text("plain_role", "none")
		b.open("client", "*")
		b.texts("roles", []string{"monitor", "read", "write"})
		b.close()
	default:
		b.text("plain_role", "none")
		c.clients(t)
	}
}

// clients writes the roles and rows of certificates.
func (c *conversion) clients(t tree) {
	roles, rows := map[string][]string{}, map[string][]string{}
	var names []string
	add := func(name, role string) {
		if roles[name] == nil {
			names = append(names, name)
		}
		if !slices.Contains(roles[name], role) {
			roles[name] = append(roles[name], role)
		}
	}
	for _, r := range []struct{ key, role string }{{"monitoring_role_cn", "monitor"}, {"write_access_cn", "write"}, {"read_access_cn", "read"}} {
		for _, name := range t.at(r.key).texts() {
			add(name, r.role)
		}
	}
	for _, rule := range t.at("data_access_rules").list() {
		name := rule.at("reader_cn").text()
		add(name, "read")
		var keys []string
		for _, p := range rule.at("meta_info").pairs() {
			keys = append(keys, key(p.key)+" = "+list(p.value.texts()))
		}
		rows[name] = append(rows[name], "{ "+strings.Join(keys, ", ")+" }")
	}
	for _, name := range names {
		c.blocks.open("client", name)
		c.blocks.texts("roles", roles[name])
		if len(rows[name]) > 0 {
			c.blocks.attr("rows", "["+strings.Join(rows[name], ", ")+"]")
		}
		c.blocks.close()
	}
	c.changed("rbac_config.enforce_rbac", "not enforced without ignore_record_exists_error; the health check is denied", "enforced; /health_check is for everyone")
	if len(rows) > 0 {
		c.changed("rbac_config.data_access_rules", "of all readers together, and only records with all of the values", "of each reader; records with one of the values")
	}
}
