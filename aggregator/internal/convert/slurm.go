package convert

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

func slurmFile(in *Input, t tree) bool {
	return has("sacct_frequency", "sender_frequency", "job_filter", "sites", "earliest_datetime")(in, t) && !t.has("prometheus_addr") ||
		strings.Contains(in.Name, "slurm") && has("components", "addr", "record_prefix")(in, t)
}

func epilogFile(in *Input, t tree) bool {
	return t.has("site_id") && !has("sites", "sacct_frequency", "job_filter")(in, t) || strings.Contains(in.Name, "epilog") && has("components", "addr")(in, t)
}

// clientSettings are those of AUDITOR's clients that an agent does not need.
func clientSettings(more map[string]string) map[string]string {
	const pulled = "an agent is not told where to send: aggregators pull, see agent in aggregator.hcl"
	out := map[string]string{
		"addr": pulled, "port": pulled, "timeout": pulled,
		"tls_config":  "agents and aggregators have certificates of bursar tls; see the block tls",
		"log_level":   "see log { level } in the block agent; AUDITOR's trace is debug",
		"logging":     "the journal keeps the log",
		"environment": "there is one file, without profiles",
	}
	maps.Copy(out, more)
	return out
}

// slurm converts the configuration of AUDITOR's Slurm collector.
func (c *conversion) slurm(_ *Input, t tree) error {
	b, s := &c.sources, &slurmRecord{c: c, columns: sacctColumns()}
	prefix := t.at("record_prefix").or("slurm")
	b.open("source", "slurm", label(prefix))
	if every := seconds(t.at("sacct_frequency")); every != "" {
		b.text("interval", every)
	}
	b.open("config")
	filter := t.at("job_filter")
	states := []string{"COMPLETED"}
	if filter.has("status") {
		states = nil
		for _, state := range filter.at("status").texts() {
			states = append(states, strings.ToUpper(state))
		}
	}
	b.texts("states", states)
	b.texts("partitions", filter.at("partition").texts())
	b.texts("users", filter.at("user").texts())
	b.texts("groups", filter.at("group").texts())
	b.texts("accounts", filter.at("account").texts())
	if b.text("earliest", t.at("earliest_datetime").text()); !t.has("earliest_datetime") {
		c.changed("earliest_datetime", "not set: from the first start of the collector on", "all that slurmdbd has; what AUDITOR sent has the same ids")
	}
	b.attr("running", "false")
	b.close()
	b.recordOf(identity(prefix, "${job.id}"), "job.Start", "job.End", "job.Submit")
	s.sites(b, t.at("sites"))
	s.meta(b, t)
	if err := s.components(b, t); err != nil {
		return err
	}
	b.close()
	c.leftOver(b, t, clientSettings(map[string]string{
		"sender_frequency": "nothing is sent: aggregators pull", "database_path": "the agent keeps its state in data_dir",
		"meta.only_if": "AUDITOR does not look at it either",
	}))
	b.close()
	c.slurmChanges()
	return nil
}

func (c *conversion) slurmChanges() {
	c.changed("requeued jobs", "the second run has the first one's id and is dropped", "each run is a record; later ones have their time of submission in the id")
	c.changed("a comment or name with | or a line break", "the columns behind it are shifted", "read as it is")
	c.changed("a job that never ran", "a record of 0 s where slurmdbd has a start, as Slurm 22.05 does", "no record; counted as skipped")
	c.changed("steps", "the main row, or the batch step; srun's steps do not count", "all steps: the largest MaxRSS, the sum of CPU time")
	c.changed("interactive and heterogeneous jobs", "their steps are taken for jobs, and the collector breaks off", "collected; parts of a heterogeneous job have ids like 7+1")
	c.changed("a column that is missing", "the job is dropped with a warning, or the collector breaks off", "the job is quarantined with the reason: bursar quarantine list")
}

// identity is the id of a record: the label is the prefix where it can be one.
func identity(prefix, rest string) string {
	if prefix == "" { // AUDITOR's ids begin with a dash then
		return `"-` + rest + `"`
	}
	if label(prefix) == prefix {
		return `"${source.label}-` + rest + `"`
	}
	return strings.TrimSuffix(quote(prefix+"-"), `"`) + rest + `"`
}

var noLabel = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// label is a prefix as the label of a source.
func label(prefix string) string { return cmp.Or(noLabel.ReplaceAllString(prefix, "-"), "site") }

// slurmRecord writes record blocks of jobs of Slurm.
type slurmRecord struct {
	c       *conversion
	columns map[string]sacctColumn
}

// condition is an only_if; "" where there is none.
func (s *slurmRecord) condition(t tree) string {
	if !t.there() {
		return ""
	}
	column, ok := s.columns[strings.ToLower(t.at("key").text())]
	if !ok {
		s.c.changed("only_if."+t.at("key").text(), "a column of Slurm's", "bursar does not have it; the condition is false")
		return "false"
	}
	text := column.expression
	if column.kind != asText {
		text = "tostring(" + text + ")"
	}
	return fmt.Sprintf("can(regex(%s, %s))", quote(t.at("matches").text()), text)
}

// sites writes which site a job is of, and that others are left out.
func (s *slurmRecord) sites(b *body, t tree) {
	var some []string
	for _, site := range t.list() {
		is := s.condition(site.at("only_if"))
		if is == "" {
			return // all jobs are of some site
		}
		some = append(some, is)
	}
	if len(some) > 0 {
		b.comment("A job of no site is left out.")
		b.attr("when", strings.Join(some, " || "))
	}
}

// site is the expression for site_id.
func (s *slurmRecord) site(t tree) string {
	expression, all := "null", t.list()
	if len(all) == 0 {
		return `"NOT_CONFIGURED"`
	}
	for _, site := range slices.Backward(all) {
		name, is := quote(site.at("name").text()), s.condition(site.at("only_if"))
		if is == "" {
			expression = name
			continue
		}
		expression = fmt.Sprintf("%s ? %s : %s", is, name, expression)
	}
	return expression
}

// meta writes the meta: what the configuration names, and AUDITOR's three keys, which
// count where both have a key.
func (s *slurmRecord) meta(b *body, t tree) {
	var named []entry
	var merged []string
	for _, m := range t.at("meta").list() {
		name, column := m.at("name").text(), s.columns[strings.ToLower(m.at("key").text())]
		m.at("key_allow_empty") // an empty value is left out in any case
		switch typ := m.at("key_type").or("String"); {
		case column.expression == "":
			b.comment("meta %s: bursar has no column %s of Slurm's", name, m.at("key").text())
		case typ == "Json":
			merged = append(merged, jsonMeta(column.expression))
		default:
			named = append(named, entry{name, column.meta(typ)})
		}
	}
	if len(merged) > 0 {
		s.c.changed("key_type: Json", "no keys where one value is not a text", "the value as a text")
	}
	named = append(named, entry{"site_id", s.site(t.at("sites"))}, entry{"user_id", "job.user"}, entry{"group_id", "job.group"})
	if len(merged) == 0 {
		b.attr("meta", object(named))
		return
	}
	b.attr("meta", "merge(\n"+strings.Join(merged, ",\n")+",\n"+object(named)+",\n)")
}

// jsonMeta makes keys of the object in a column; none where it is not an object of texts.
func jsonMeta(column string) string {
	text := fmt.Sprintf(`trimsuffix(trimprefix(%s, "\""), "\"")`, column)
	keys := func(text string) string { return "{ for k, v in jsondecode(" + text + ") : k => tostring(v) }" }
	return fmt.Sprintf("try(%s, %s, {})", keys(text), keys(fmt.Sprintf(`replace(%s, "'", "\"")`, text)))
}

// entry is a key of an object and its expression.
type entry struct{ name, expression string }

func object(pairs []entry) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, p := range pairs {
		fmt.Fprintf(&b, "%s = %s\n", key(p.name), p.expression)
	}
	b.WriteString("}")
	return b.String()
}

// components writes the components, by default cores.
func (s *slurmRecord) components(b *body, t tree) error {
	all := t.at("components").list()
	if len(all) == 0 {
		b.open("component", "Cores")
		b.attr("amount", "job.NCPUS")
		b.close()
	}
	for _, one := range all {
		if err := s.component(b, one); err != nil {
			return err
		}
	}
	return nil
}

func (s *slurmRecord) component(b *body, t tree) error {
	name, column := t.at("name").text(), t.at("key").text()
	t.at("key_allow_empty")
	known, ok := s.columns[strings.ToLower(column)]
	if !ok {
		b.comment("component %s: bursar has no column %s of Slurm's", name, column)
		s.c.changed("component "+name, "column "+column, "bursar does not have it; the component is left out")
		t.at("key_type")
		t.at("default_value")
		t.at("scores")
		t.at("only_if")
		return nil
	}
	amount := known.amount(t.at("key_type").or("Integer"), func(before, now string) { s.c.changed("component "+name, before, now) })
	if def := t.at("default_value").text(); def != "" {
		amount = fmt.Sprintf("coalesce(%s, %s)", amount, def)
	}
	b.open("component", name)
	b.attr("amount", amount)
	if known.total {
		b.attr("kind", `"total"`)
	}
	b.attr("when", s.condition(t.at("only_if")))
	for _, score := range t.at("scores").list() {
		value := score.at("value").or(score.at("factor").text())
		if _, ok := score.at("value").number(); !ok && !score.has("factor") {
			return fmt.Errorf("line %d: component %s: score %s has no value", score.line(), name, score.at("name").text())
		}
		b.open("score", score.at("name").text())
		b.attr("value", value)
		b.attr("when", s.condition(score.at("only_if")))
		b.close()
	}
	b.close()
	return nil
}

// epilog converts the configuration of AUDITOR's Slurm epilog collector.
func (c *conversion) epilog(_ *Input, t tree) error {
	b, s := &c.sources, &slurmRecord{c: c, columns: scontrolKeys()}
	prefix := t.at("record_prefix").or("slurm")
	b.open("source", "slurm-epilog", label(prefix))
	// AUDITOR's ids have the number that SLURM_JOB_ID has, also of a task of an array.
	b.recordOf(identity(prefix, "${job.JobIDRaw}${trimprefix(job.id, job.JobID)}"), "job.Start", "job.End", "job.Submit")
	b.attr("meta", object([]entry{{"site_id", quote(t.at("site_id").or("none"))}, {"user_id", "job.user"}, {"group_id", "job.group"}}))
	if err := s.components(b, t); err != nil {
		return err
	}
	b.close()
	c.leftOver(b, t, clientSettings(nil))
	b.close()
	c.changed("Epilog of slurm.conf", "auditor-slurm-epilog-collector", "bursar-epilog, which returns when the job is on the agent's disk")
	c.changed("what a job used", "scontrol at the end of the job", "sacct some seconds later; scontrol's figures only where slurmdbd lacks the job")
	c.changed("AUDITOR away", "the record is lost and the epilog fails", "the job waits on disk and the epilog succeeds")
	return nil
}
