package convert

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// layer is the place of a file in the order in which AUDITOR's programs read them: base, of the
// server alone local or production, and the file of the command line. Later ones win.
func layer(name string) int {
	base := filepath.Base(name)
	switch strings.TrimSuffix(base, filepath.Ext(base)) {
	case "base":
		return 0
	case "local", "production":
		return 1
	}
	return 2
}

func isServerFile(in *Input, t tree) bool {
	return hasAnyKey("application", "database", "rbac_config", "archival_config")(in, t) || !t.isEmpty() && layer(in.Name) < 2
}

// convertServers converts the files of AUDITOR's server as the one configuration that they are.
func (c *conversion) convertServers() {
	slices.SortStableFunc(c.servers, func(a, b file) int { return layer(a.in.Name) - layer(b.in.Name) })
	var files []file
	chosen := "" // local or production
	for _, s := range c.servers {
		if layer(s.in.Name) == 1 {
			if chosen != "" {
				c.problems = append(c.problems, Problem{File: s.in.Name, Message: "AUDITOR reads " + chosen + " or this one, by AUDITOR_ENVIRONMENT: give only that file"})
				continue
			}
			chosen = s.in.Name
		}
		files = append(files, s)
	}
	if len(files) > 0 {
		c.convertLayers(files)
	}
}

// convertServer converts the configuration of AUDITOR's server.
func (c *conversion) convertServer(_ *Input, t tree) error {
	c.noteChanged("variables AUDITOR_…", "win over the files", "none; those of AUDITOR's unit are not converted")
	app, tls := t.subtree("application"), t.subtree("tls_config")
	secure := tls.subtree("use_tls").truthValue()
	hosts := cmp.Or(strings.Join(app.subtree("addr").listTexts(), " "), "127.0.0.1")
	port := app.subtree("port").textOr("8000")
	c.writeListeners(t, strings.Fields(hosts), port, secure)
	if secure {
		c.inside.openBlock("tls")
		c.inside.writeText("ca", tls.subtree("ca_cert_path").plainText())
		c.inside.writeText("cert", tls.subtree("server_cert_path").plainText())
		c.inside.writeText("key", tls.subtree("server_key_path").plainText())
		c.inside.closeBlock()
		c.noteChanged("tls_config", "any certificate serves", "the same; between agents and aggregators only those of bursar tls")
	}
	c.writeGauges(t.subtree("metrics", "database"))
	if level := t.subtree("log_level").plainText(); level != "" {
		c.inside.openBlock("log")
		c.inside.writeText("level", strings.ReplaceAll(level, "trace", "debug"))
		c.inside.closeBlock()
	}
	c.convertArchive(t.subtree("archival_config"))
	c.accessBlock(t.subtree("rbac_config"), secure)
	t.subtree("database", "password") // is not shown
	if db := t.subtree("database"); db.isThere() {
		c.inside.writeComment("The records of AUDITOR: bursar import auditor 'postgres://%s@%s:%s/%s' with the password in PGPASSWORD.",
			db.subtree("username").textOr("postgres"), db.subtree("host").textOr("localhost"), db.subtree("port").textOr("5432"), db.subtree("database_name").textOr("auditor"))
		db.subtree("require_ssl")
	}
	c.leftOver(&c.inside, t, map[string]string{
		"application.web_workers": "there are as many as processors", "environment": "there is one file, without profiles", "database": "bursar has its own store",
		"logging": "the journal keeps the log", "rbac_config.base_policies": "the roles read, write and monitor are fixed",
	})
	return nil
}

// writeListeners writes the listeners.
func (c *conversion) writeListeners(t tree, hosts []string, port string, secure bool) {
	var plain, remote, encrypted []string
	for _, h := range hosts {
		if ip := net.ParseIP(h); h != "localhost" && (ip == nil || !ip.IsLoopback()) {
			remote = append(remote, net.JoinHostPort(h, port))
		}
		plain = append(plain, net.JoinHostPort(h, port))
	}
	tls := t.subtree("tls_config")
	at := tls.subtree("https_addr").listTexts()
	if len(at) == 0 {
		at = hosts
	}
	for _, h := range at {
		encrypted = append(encrypted, net.JoinHostPort(h, tls.subtree("https_port").textOr("8443")))
	}
	b := &c.inside
	b.openBlock("api")
	switch {
	case secure:
		b.writeComment("AUDITOR's plain port stayed open to everyone beside TLS. Here it answers /health_check on this machine.")
		b.writeTexts("listen", []string{net.JoinHostPort("127.0.0.1", port)})
		b.writeTexts("tls_listen", encrypted)
		c.noteChanged("application.port beside TLS", "reads and writes without a certificate, from everywhere", "/health_check on this machine")
	case len(remote) > 0:
		b.writeTexts("listen", plain)
		b.writeComment("Other machines reach it without a certificate, as with AUDITOR: keep a firewall before it. Name the host as clients do.")
		b.writeAttribute("allow_plain_remote", "true")
		b.writeComment("hosts = [%s]", quoteText("accounting.example.org"))
		c.noteChanged("application.addr", "any name of the host in a request", "only those of hosts, addresses and localhost")
	default:
		b.writeTexts("listen", plain)
	}
	if t.subtree("ignore_record_exists_error").truthValue() {
		b.writeAttribute("ignore_record_exists_error", "true")
		c.noteChanged("ignore_record_exists_error", "new records of a bulk with a known one are lost", "they are stored")
	}
	b.closeBlock()
}

// writeGauges writes which counts /metrics has.
func (c *conversion) writeGauges(t tree) {
	all := t.subtree("metrics").listTexts()
	frequency := secondsExpression(t.subtree("frequency"))
	if len(all) == 0 && frequency == "" {
		return
	}
	b := &c.inside
	b.openBlock("metrics")
	b.writeText("frequency", frequency)
	for _, g := range []struct{ metric, key, attr, def string }{
		{"RecordCountPerSite", "meta_key_site", "site_meta_key", "site"},
		{"RecordCountPerGroup", "meta_key_group", "group_meta_key", "group"},
		{"RecordCountPerUser", "meta_key_user", "user_meta_key", "user"},
	} {
		if name := t.subtree(g.key).textOr(g.def); slices.Contains(all, g.metric) {
			b.writeText(g.attr, name)
			if name == g.def {
				b.writeComment("AUDITOR's default; bursar's sources and the Slurm collector write %s_id", g.def)
			}
		}
	}
	b.closeBlock()
}

// convertArchive converts the archives of old months to an action that removes the same months.
func (c *conversion) convertArchive(t tree) {
	if !t.isThere() {
		return
	}
	path, prefix := t.subtree("archive_path").plainText(), t.subtree("archive_file_prefix").textOr("auditor")
	c.inside.WriteString("\n")
	c.inside.writeComment("AUDITOR's archives: bursar import auditor '%s/%s_*.parquet'", cmp.Or(path, "."), prefix)
	b := &c.blocks
	b.openBlock("action", "archive", "auditor")
	if schedule := cronLine(t.subtree("cron_schedule").plainText()); schedule != "" {
		b.writeText("schedule", schedule)
		b.writeText("zone", "UTC")
	} else {
		b.writeComment("cron_schedule: %s: it runs each night", t.subtree("cron_schedule").textOr("none"))
	}
	b.openBlock("config")
	if !strings.HasPrefix(path, "/") {
		b.writeComment("In AUDITOR: %s", cmp.Or(path, "no archive_path"))
		path = "/srv/archive"
	}
	b.writeComment("A folder that is there, to which the aggregators can write; of several aggregators the same one, such as a mount.")
	b.writeText("directory", path)
	months, known := t.subtree("archive_older_than_months").numberValue()
	switch {
	case !known || math.IsNaN(months):
		b.writeComment("AUDITOR says no archive_older_than_months: nothing is removed.")
	case months < 1:
		b.writeComment("In AUDITOR: %s; a month is the least.", t.subtree("archive_older_than_months").plainText())
		months = 1
		fallthrough
	default:
		b.writeAttribute("remove_after_months", strconv.FormatFloat(min(months, 1200), 'f', 0, 64))
	}
	b.closeBlock()
	b.closeBlock()
	b.WriteString("\n")
	b.writeComment("For programs that read AUDITOR's archives: the same months with its columns, in a folder of their own. Nothing is removed by this schema, since milliseconds cannot be restored exactly.")
	fmt.Fprintf(b, "# action \"archive\" \"columns\" {\n#   config {\n#     directory = %s\n#     schema    = \"auditor\"\n#   }\n# }\n", quoteText(strings.TrimRight(path, "/")+"-columns"))
	c.noteChanged("archival_config", "old months leave the database, and cannot be asked for before a script restores them", "the same months leave the store; usage and ids stay, archived=true lists their records, bursar archive restore gives them back")
	c.noteChanged("archival_config.cron_schedule", "and at each start; files are compared by the number of rows", "at these times; files are read back and compared before records are removed")
	c.noteChanged("archival_config.archive_file_prefix", prefix+"_YEAR_MONTH.parquet, "+t.subtree("compression_type").textOr("Gzip")+", milliseconds", "year=YEAR/month=MONTH/records-….parquet, zstd, microseconds")
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
	b.openBlock("access")
	defer b.closeBlock()
	switch {
	case !secure:
		b.writeComment("Whoever reaches a plain address reads, writes and gets /metrics, as with AUDITOR.")
		b.writeText("plain_role", "monitor,read,write")
		t.listPairs()
	case !t.subtree("enforce_rbac").truthValue():
		b.writeComment("Every certificate of the authority reads, writes and gets /metrics, as with AUDITOR without RBAC.")
		b.writeText("plain_role", "none")
		b.openBlock("client", "*")
		b.writeTexts("roles", []string{"monitor", "read", "write"})
		b.closeBlock()
	default:
		b.writeText("plain_role", "none")
		c.writeClients(t)
	}
}

// writeClients writes the roles and rows of certificates.
func (c *conversion) writeClients(t tree) {
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
		for _, name := range t.subtree(r.key).listTexts() {
			add(name, r.role)
		}
	}
	for _, rule := range t.subtree("data_access_rules").listElements() {
		name := rule.subtree("reader_cn").plainText()
		add(name, "read")
		var keys []string
		for _, p := range rule.subtree("meta_info").listPairs() {
			keys = append(keys, keyExpression(p.key)+" = "+listExpression(p.value.listTexts()))
		}
		rows[name] = append(rows[name], "{ "+strings.Join(keys, ", ")+" }")
	}
	for _, name := range names {
		c.blocks.openBlock("client", name)
		c.blocks.writeTexts("roles", roles[name])
		if len(rows[name]) > 0 {
			c.blocks.writeAttribute("rows", "["+strings.Join(rows[name], ", ")+"]")
		}
		c.blocks.closeBlock()
	}
	c.noteChanged("rbac_config.enforce_rbac", "not enforced without ignore_record_exists_error; the health check is denied", "enforced; /health_check is for everyone")
	if len(rows) > 0 {
		c.noteChanged("rbac_config.data_access_rules", "of all readers together, and only records with all of the values", "of each reader; records with one of the values")
	}
}
