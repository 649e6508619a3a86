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
	return hasAnyKey("sacct_frequency", "sender_frequency", "job_filter", "sites", "earliest_datetime")(in, t) && !t.hasKey("prometheus_addr") ||
		strings.Contains(in.Name, "slurm") && hasAnyKey("components", "addr", "record_prefix")(in, t)
}

func epilogFile(in *Input, t tree) bool {
	return t.hasKey("site_id") && !hasAnyKey("sites", "sacct_frequency", "job_filter")(in, t) || strings.Contains(in.Name, "epilog") && hasAnyKey("components", "addr")(in, t)
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

// convertSlurm converts the configuration of AUDITOR's Slurm collector.
func (c *conversion) convertSlurm(_ *Input, t tree) error {
	b, s := &c.sources, &slurmRecord{c: c, columns: sacctColumns()}
	prefix := t.subtree("record_prefix").textOr("slurm")
	b.openBlock("source", "slurm", sourceLabel(prefix))
	if every := secondsExpression(t.subtree("sacct_frequency")); every != "" {
		b.writeText("interval", every)
	}
	b.openBlock("config")
	filter := t.subtree("job_filter")
	states := []string{"COMPLETED"}
	if filter.hasKey("status") {
		states = nil
		for _, state := range filter.subtree("status").listTexts() {
			states = append(states, strings.ToUpper(state))
		}
	}
	b.writeTexts("states", states)
	b.writeTexts("partitions", filter.subtree("partition").listTexts())
	b.writeTexts("users", filter.subtree("user").listTexts())
	b.writeTexts("groups", filter.subtree("group").listTexts())
	b.writeTexts("accounts", filter.subtree("account").listTexts())
	if b.writeText("earliest", t.subtree("earliest_datetime").plainText()); !t.hasKey("earliest_datetime") {
		c.noteChanged("earliest_datetime", "not set: from the first start of the collector on", "all that slurmdbd has; what AUDITOR sent has the same ids")
	}
	b.writeAttribute("running", "false")
	b.closeBlock()
	b.recordOf(idExpression(prefix, "${job.id}"), "job.Start", "job.End", "job.Submit")
	s.writeSites(b, t.subtree("sites"))
	s.writeMeta(b, t)
	if err := s.writeComponents(b, t); err != nil {
		return err
	}
	b.closeBlock()
	c.leftOver(b, t, clientSettings(map[string]string{
		"sender_frequency": "nothing is sent: aggregators pull", "database_path": "the agent keeps its state in data_dir",
		"meta.only_if": "AUDITOR does not look at it either",
	}))
	b.closeBlock()
	c.slurmChanges()
	return nil
}

func (c *conversion) slurmChanges() {
	c.noteChanged("requeued jobs", "the second run has the first one's id and is dropped", "each run is a record; later ones have their time of submission in the id")
	c.noteChanged("a comment or name with | or a line break", "the columns behind it are shifted", "read as it is")
	c.noteChanged("a job that never ran", "a record of 0 s where slurmdbd has a start, as Slurm 22.05 does", "no record; counted as skipped")
	c.noteChanged("steps", "the main row, or the batch step; srun's steps do not count", "all steps: the largest MaxRSS, the sum of CPU time")
	c.noteChanged("interactive and heterogeneous jobs", "their steps are taken for jobs, and the collector breaks off", "collected; parts of a heterogeneous job have ids like 7+1")
	c.noteChanged("a column that is missing", "the job is dropped with a warning, or the collector breaks off", "the job is quarantined with the reason: bursar quarantine list")
}

// idExpression is the id of a record: the label is the prefix where it can be one.
func idExpression(prefix, rest string) string {
	if prefix == "" { // AUDITOR's ids begin with a dash then
		return `"-` + rest + `"`
	}
	if sourceLabel(prefix) == prefix {
		return `"${source.label}-` + rest + `"`
	}
	return strings.TrimSuffix(quoteText(prefix+"-"), `"`) + rest + `"`
}

var noLabel = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// sourceLabel is a prefix as the label of a source.
func sourceLabel(prefix string) string { return cmp.Or(noLabel.ReplaceAllString(prefix, "-"), "site") }

// slurmRecord writes record blocks of jobs of Slurm.
type slurmRecord struct {
	c       *conversion
	columns map[string]sacctColumn
}

// conditionExpression is an only_if; "" where there is none.
func (s *slurmRecord) conditionExpression(t tree) string {
	if !t.isThere() {
		return ""
	}
	column, ok := s.columns[strings.ToLower(t.subtree("key").plainText())]
	if !ok {
		s.c.noteChanged("only_if."+t.subtree("key").plainText(), "a column of Slurm's", "bursar does not have it; the condition is false")
		return "false"
	}
	text := column.expression
	if column.kind != asText {
		text = "tostring(" + text + ")"
	}
	return fmt.Sprintf("can(regex(%s, %s))", quoteText(t.subtree("matches").plainText()), text)
}

// writeSites writes which site a job is of, and that others are left out.
func (s *slurmRecord) writeSites(b *body, t tree) {
	var some []string
	for _, site := range t.listElements() {
		is := s.conditionExpression(site.subtree("only_if"))
		if is == "" {
			return // all jobs are of some site
		}
		some = append(some, is)
	}
	if len(some) > 0 {
		b.writeComment("A job of no site is left out.")
		b.writeAttribute("when", strings.Join(some, " || "))
	}
}

// siteExpression is the expression for site_id.
func (s *slurmRecord) siteExpression(t tree) string {
	expression, all := "null", t.listElements()
	if len(all) == 0 {
		return `"NOT_CONFIGURED"`
	}
	for _, site := range slices.Backward(all) {
		name, is := quoteText(site.subtree("name").plainText()), s.conditionExpression(site.subtree("only_if"))
		if is == "" {
			expression = name
			continue
		}
		expression = fmt.Sprintf("%s ? %s : %s", is, name, expression)
	}
	return expression
}

// writeMeta writes the meta: what the configuration names, and AUDITOR's three keys, which
// count where both have a key.
func (s *slurmRecord) writeMeta(b *body, t tree) {
	var named []entry
	var merged []string
	for _, m := range t.subtree("meta").listElements() {
		name, column := m.subtree("name").plainText(), s.columns[strings.ToLower(m.subtree("key").plainText())]
		m.subtree("key_allow_empty") // an empty value is left out in any case
		switch typ := m.subtree("key_type").textOr("String"); {
		case column.expression == "":
			b.writeComment("meta %s: bursar has no column %s of Slurm's", name, m.subtree("key").plainText())
		case typ == "Json":
			merged = append(merged, jsonMeta(column.expression))
		default:
			named = append(named, entry{name, column.metaExpression(typ)})
		}
	}
	if len(merged) > 0 {
		s.c.noteChanged("key_type: Json", "no keys where one value is not a text", "the value as a text")
	}
	named = append(named, entry{"site_id", s.siteExpression(t.subtree("sites"))}, entry{"user_id", "job.user"}, entry{"group_id", "job.group"})
	if len(merged) == 0 {
		b.writeAttribute("meta", objectExpression(named))
		return
	}
	b.writeAttribute("meta", "merge(\n"+strings.Join(merged, ",\n")+",\n"+objectExpression(named)+",\n)")
}

// jsonMeta makes keys of the object in a column; none where it is not an object of texts.
func jsonMeta(column string) string {
	text := fmt.Sprintf(`trimsuffix(trimprefix(%s, "\""), "\"")`, column)
	keys := func(text string) string { return "{ for k, v in jsondecode(" + text + ") : k => tostring(v) }" }
	return fmt.Sprintf("try(%s, %s, {})", keys(text), keys(fmt.Sprintf(`replace(%s, "'", "\"")`, text)))
}

// entry is a key of an object and its expression.
type entry struct{ name, expression string }

func objectExpression(pairs []entry) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, p := range pairs {
		fmt.Fprintf(&b, "%s = %s\n", keyExpression(p.name), p.expression)
	}
	b.WriteString("}")
	return b.String()
}

// writeComponents writes the components, by default cores.
func (s *slurmRecord) writeComponents(b *body, t tree) error {
	all := t.subtree("components").listElements()
	if len(all) == 0 {
		b.openBlock("component", "Cores")
		b.writeAttribute("amount", "job.NCPUS")
		b.closeBlock()
	}
	for _, one := range all {
		if err := s.writeComponent(b, one); err != nil {
			return err
		}
	}
	return nil
}

func (s *slurmRecord) writeComponent(b *body, t tree) error {
	name, column := t.subtree("name").plainText(), t.subtree("key").plainText()
	t.subtree("key_allow_empty")
	known, ok := s.columns[strings.ToLower(column)]
	if !ok {
		b.writeComment("component %s: bursar has no column %s of Slurm's", name, column)
		s.c.noteChanged("component "+name, "column "+column, "bursar does not have it; the component is left out")
		t.subtree("key_type")
		t.subtree("default_value")
		t.subtree("scores")
		t.subtree("only_if")
		return nil
	}
	amount := known.amountExpression(t.subtree("key_type").textOr("Integer"), func(before, now string) { s.c.noteChanged("component "+name, before, now) })
	if def := t.subtree("default_value").plainText(); def != "" {
		amount = fmt.Sprintf("coalesce(%s, %s)", amount, def)
	}
	b.openBlock("component", name)
	b.writeAttribute("amount", amount)
	if known.total {
		b.writeAttribute("kind", `"total"`)
	}
	b.writeAttribute("when", s.conditionExpression(t.subtree("only_if")))
	for _, score := range t.subtree("scores").listElements() {
		value := score.subtree("value").textOr(score.subtree("factor").plainText())
		if _, ok := score.subtree("value").numberValue(); !ok && !score.hasKey("factor") {
			return score.errorAt("component %s: score %s has no value", name, score.subtree("name").plainText())
		}
		b.openBlock("score", score.subtree("name").plainText())
		b.writeAttribute("value", value)
		b.writeAttribute("when", s.conditionExpression(score.subtree("only_if")))
		b.closeBlock()
	}
	b.closeBlock()
	return nil
}

// convertEpilog converts the configuration of AUDITOR's Slurm epilog collector.
func (c *conversion) convertEpilog(_ *Input, t tree) error {
	b, s := &c.sources, &slurmRecord{c: c, columns: scontrolKeys()}
	prefix := t.subtree("record_prefix").textOr("slurm")
	b.openBlock("source", "slurm-epilog", sourceLabel(prefix))
	// AUDITOR's ids have the number that SLURM_JOB_ID has, also of a task of an array.
	b.recordOf(idExpression(prefix, "${job.JobIDRaw}${trimprefix(job.id, job.JobID)}"), "job.Start", "job.End", "job.Submit")
	b.writeAttribute("meta", objectExpression([]entry{{"site_id", quoteText(t.subtree("site_id").textOr("none"))}, {"user_id", "job.user"}, {"group_id", "job.group"}}))
	if err := s.writeComponents(b, t); err != nil {
		return err
	}
	b.closeBlock()
	c.leftOver(b, t, clientSettings(nil))
	b.closeBlock()
	c.noteChanged("Epilog of slurm.conf", "auditor-slurm-epilog-collector", "bursar-epilog, which returns when the job is on the agent's disk")
	c.noteChanged("what a job used", "scontrol at the end of the job", "sacct some seconds later; scontrol's figures only where slurmdbd lacks the job")
	c.noteChanged("AUDITOR away", "the record is lost and the epilog fails", "the job waits on disk and the epilog succeeds")
	return nil
}
