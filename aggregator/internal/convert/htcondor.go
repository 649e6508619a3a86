package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// htcondor converts the configuration of AUDITOR's HTCondor collector.
func (c *conversion) htcondor(_ *Input, t tree) error {
	b := &c.sources
	prefix := t.at("record_prefix").or("htcondor")
	b.open("source", "htcondor", label(prefix))
	b.text("interval", seconds(t.at("interval")))
	if !t.has("interval") {
		b.text("interval", "15m")
	}
	b.open("config")
	schedds := t.at("schedd_names").texts()
	if file := t.at("history_file").text(); file != "" {
		b.text("history", file)
		b.comment("The history has the last run of a job. With the epoch history each run counts: epochs = \"…\"")
	} else {
		b.text("through", "commands")
		b.text("pool", t.at("pool").text())
		b.text("constraint", t.at("constraint").text())
	}
	b.texts("states", c.jobStates(b, t.at("job_status")))
	b.text("earliest", t.at("earliest_datetime").text())
	if !t.has("history_file") {
		for _, name := range schedds {
			b.open("schedd", name)
			b.close()
		}
	}
	b.close()
	b.recordOf(identity(prefix, "${job.id}"), "job.start_time", "job.end_time", "job.QDate")
	var meta []entry
	for _, p := range t.at("meta").pairs() {
		meta = append(meta, entry{p.key, c.adValues(b, p)})
	}
	b.attr("meta", object(meta))
	for _, one := range t.at("components").list() {
		c.adComponent(b, one)
	}
	b.close()
	c.leftOver(b, t, clientSettings(map[string]string{
		"state_db": "the agent keeps its state in data_dir", "query_type": "commands are run without a shell", "log_file": "the journal keeps the log",
		"pool": "of commands; the history is read from its file", "constraint": "of commands: with history, use states or when", "class_ads": "the columns follow from the mapping",
	}))
	b.close()
	c.changed("start of a run", "LastMatchTime, which is earlier where a claim is used again", "when the run began (JobCurrentStartDate)")
	c.changed("stop of a run", "that of the job: the first of CompletionDate, EpochWriteDate, EnteredCurrentStatus, else 1970", "of a run that was held, evicted or removed when it left its slot (LastVacateTime)")
	c.changed("runs of a job", "the last one", "each, where there are epochs; later ones have their number behind the id")
	c.changed("matches", "the collector breaks off at a number", "numbers are compared as texts, too")
	c.changed("a value with a comma", "the columns behind it are shifted", "read as it is")
	c.changed("history_file", "this file", "this file and its rotations")
	c.changed("an attribute that is an expression", "its value", "its text")
	c.changed("a truth value in meta", "True or False", "true or false")
	c.changed("RECORD_EXISTS", "the collector breaks off and stays at that job", "does not occur: aggregators pull")
	c.changed("a component without a value", "the job is skipped", "the job is quarantined with the reason: bursar quarantine list")
	return nil
}

// jobStates are the states for JobStatus.
func (c *conversion) jobStates(b *body, t tree) (states []string) {
	completed, others := []string{"COMPLETED", "FAILED", "KILLED"}, []string{"CANCELLED", "EVICTED", "HELD", "TIMEOUT", "OUT_OF_MEMORY"}
	of := map[string][]string{"3": others, "4": completed}
	for _, status := range t.texts() {
		if of[status] == nil {
			b.comment("job_status %s is not that of a job in the history.", status)
		}
		states = append(states, of[status]...)
	}
	if len(states) == len(completed)+len(others) {
		return nil
	}
	if len(states) > 0 {
		c.changed("job_status", "of the job, at its end", "of each run: with 3, also runs that were evicted or held of jobs that completed later")
	}
	return states
}

// adValues are the values of a key of the meta: those of all entries, of site that of the
// first one.
func (c *conversion) adValues(b *body, p pair) string {
	var all []string
	for _, e := range p.value.list() {
		all = append(all, c.ad(b, e))
	}
	switch {
	case len(all) == 1:
		return all[0]
	case p.key == "site":
		return fmt.Sprintf("try(coalesce(\n%s,\n), null)", strings.Join(all, ",\n"))
	}
	return fmt.Sprintf("[for v in [\n%s,\n] : v if v != null]", strings.Join(all, ",\n"))
}

// sum is a ClassAd expression that can be one of HCL, too.
var (
	attribute = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	sum       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\s*[-+*]\s*[A-Za-z_][A-Za-z0-9_]*)+$`)
	inside    = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// ad is an entry as a text: of an attribute, a factor or a name; null where there is none.
func (c *conversion) ad(b *body, t tree) string {
	value, ok := c.adKey(b, t)
	if !ok {
		return "null"
	}
	name := quote(t.at("name").text())
	if p := t.at("matches").text(); p != "" {
		re, err := regexp.Compile(p)
		switch {
		case err != nil:
			b.comment("The pattern %s cannot be written for RE2: %v", p, err)
			c.changed("matches "+p, "a pattern of Python", "not converted: write an expression with regex()")
			return "null"
		case re.NumSubexp() > 0:
			value = fmt.Sprintf("regex(%s, %s)[0]", quote(p), asString(value))
		default:
			value = fmt.Sprintf("can(regex(%s, %s)) ? %s : null", quote(p), asString(value), name)
		}
	}
	if is := c.adCondition(t.at("only_if")); is != "" {
		value = fmt.Sprintf("%s ? %s : null", is, asString(value))
	}
	if value == name { // a constant
		return value
	}
	return "try(" + value + ", null)"
}

// adKey is the value that an entry names; ok is false where bursar cannot have it.
func (c *conversion) adKey(b *body, t tree) (value string, ok bool) {
	switch k := t.at("key").text(); {
	case attribute.MatchString(k):
		return adText(k), true
	case sum.MatchString(k):
		return inside.ReplaceAllStringFunc(k, func(name string) string { return "tonumber(" + adText(name) + ")" }), true
	case k != "":
		b.comment("The ClassAd expression %s has no equal here: write it with job.ad", k)
		c.changed("key "+k, "an expression that condor_history evaluates", "not converted: write it with job.ad")
		return "", false
	case t.has("factor"):
		return t.at("factor").text(), true
	}
	return quote(t.at("name").text()), true
}

// adCondition is an only_if; "" where there is none.
func (c *conversion) adCondition(t tree) string {
	if !t.there() {
		return ""
	}
	return fmt.Sprintf("can(regex(%s, %s))", quote(t.at("matches").text()), adText(t.at("key").text()))
}

// adText is an attribute as AUDITOR sees it: the text that condor_history -af prints, by a
// name in any case.
func adText(name string) string { return "job.ad_text[" + quote(strings.ToLower(name)) + "]" }

// asString makes a text of an expression that is none.
func asString(expression string) string {
	if strings.HasPrefix(expression, "job.ad_text[") || strings.HasPrefix(expression, `"`) || strings.HasPrefix(expression, "regex(") {
		return expression
	}
	return "tostring(" + expression + ")"
}

// cpuTime says of which attributes the sum was consumed over the run.
var cpuTime = regexp.MustCompile(`(?i)cpu$|cpu[-+ ]|^(?:Total|User|System)CPU$`)

func (c *conversion) adComponent(b *body, t tree) {
	name, k := t.at("name").text(), t.at("key").text()
	value := c.ad(b, t)
	if value == "null" {
		t.at("scores")
		c.changed("component "+name, k, "left out")
		return
	}
	b.open("component", name)
	b.attr("amount", "floor(tonumber("+value+"))")
	if slices.Contains([]string{"TotalCPU", "UserCPU", "SystemCPU"}, name) || strings.HasPrefix(k, "Remote") && cpuTime.MatchString(k) {
		b.attr("kind", `"total"`)
	}
	for _, s := range t.at("scores").list() {
		b.open("score", s.at("name").text())
		b.attr("value", "coalesce(try(tonumber("+c.ad(b, s)+"), null), 0)")
		b.close()
	}
	b.close()
}
