package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
)

// convertHTCondor converts the configuration of AUDITOR's HTCondor collector.
func (c *conversion) convertHTCondor(_ *Input, t tree) error {
	b := &c.sources
	prefix := t.subtree("record_prefix").textOr("htcondor")
	b.openBlock("source", "htcondor", sourceLabel(prefix))
	b.writeText("interval", secondsExpression(t.subtree("interval")))
	if !t.hasKey("interval") {
		b.writeText("interval", "15m")
	}
	b.openBlock("config")
	schedds := t.subtree("schedd_names").listTexts()
	if file := t.subtree("history_file").plainText(); file != "" {
		b.writeText("history", file)
		b.writeComment("The history has the last run of a job. With the epoch history each run counts: epochs = \"…\"")
	} else {
		b.writeText("through", "commands")
		b.writeText("pool", t.subtree("pool").plainText())
		b.writeText("constraint", t.subtree("constraint").plainText())
	}
	b.writeTexts("states", c.jobStates(b, t.subtree("job_status")))
	b.writeText("earliest", t.subtree("earliest_datetime").plainText())
	if !t.hasKey("history_file") {
		for _, name := range schedds {
			b.openBlock("schedd", name)
			b.closeBlock()
		}
	}
	b.closeBlock()
	b.recordOf(idExpression(prefix, "${job.id}"), "job.start_time", "job.end_time", "job.QDate")
	var meta []entry
	for _, p := range t.subtree("meta").listPairs() {
		meta = append(meta, entry{p.key, c.adValues(b, p)})
	}
	b.writeAttribute("meta", objectExpression(meta))
	for _, one := range t.subtree("components").listElements() {
		c.adComponent(b, one)
	}
	b.closeBlock()
	c.leftOver(b, t, clientSettings(map[string]string{
		"state_db": "the agent keeps its state in data_dir", "query_type": "commands are run without a shell", "log_file": "the journal keeps the log",
		"pool": "of commands; the history is read from its file", "constraint": "of commands: with history, use states or when", "class_ads": "the columns follow from the mapping",
	}))
	b.closeBlock()
	c.noteChanged("start of a run", "LastMatchTime, which is earlier where a claim is used again", "when the run began (JobCurrentStartDate)")
	c.noteChanged("stop of a run", "that of the job: the first of CompletionDate, EpochWriteDate, EnteredCurrentStatus, else 1970", "of a run that was held, evicted or removed when it left its slot (LastVacateTime)")
	c.noteChanged("runs of a job", "the last one", "each, where there are epochs; later ones have their number behind the id")
	c.noteChanged("matches", "the collector breaks off at a number", "numbers are compared as texts, too")
	c.noteChanged("a value with a comma", "the columns behind it are shifted", "read as it is")
	c.noteChanged("history_file", "this file", "this file and its rotations")
	c.noteChanged("an attribute that is an expression", "its value", "its text")
	c.noteChanged("a truth value in meta", "True or False", "true or false")
	c.noteChanged("RECORD_EXISTS", "the collector breaks off and stays at that job", "does not occur: aggregators pull")
	c.noteChanged("a component without a value", "the job is skipped", "the job is quarantined with the reason: bursar quarantine list")
	return nil
}

// jobStates are the states for JobStatus.
func (c *conversion) jobStates(b *body, t tree) (states []string) {
	completed, others := []string{"COMPLETED", "FAILED", "KILLED"}, []string{"CANCELLED", "EVICTED", "HELD", "TIMEOUT", "OUT_OF_MEMORY"}
	of := map[string][]string{"3": others, "4": completed}
	for _, status := range t.listTexts() {
		if of[status] == nil {
			b.writeComment("job_status %s is not that of a job in the history.", status)
		}
		states = append(states, of[status]...)
	}
	if len(states) == len(completed)+len(others) {
		return nil
	}
	if len(states) > 0 {
		c.noteChanged("job_status", "of the job, at its end", "of each run: with 3, also runs that were evicted or held of jobs that completed later")
	}
	return states
}

// adValues are the values of a key of the meta: those of all entries, of site that of the
// first one.
func (c *conversion) adValues(b *body, p pair) string {
	var all []string
	for _, e := range p.value.listElements() {
		all = append(all, c.adExpression(b, e))
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

// adExpression is an entry as a text: of an attribute, a factor or a name; null where there is none.
func (c *conversion) adExpression(b *body, t tree) string {
	is := c.adCondition(t.subtree("only_if"))
	value, ok := c.adKey(b, t)
	if !ok {
		return "null"
	}
	name := quoteText(t.subtree("name").plainText())
	if p := t.subtree("matches").plainText(); p != "" {
		re, err := hcl.CompilePattern(p)
		switch {
		case err != nil:
			b.writeComment("The pattern %s cannot be written here: %v", p, err)
			c.noteChanged("matches "+p, "a pattern of Python", "not converted: write an expression with regex()")
			return "null"
		case re.NumSubexp() > 0:
			value = fmt.Sprintf("regex(%s, %s)[0]", quoteText(p), asString(value))
		default:
			value = fmt.Sprintf("can(regex(%s, %s)) ? %s : null", quoteText(p), asString(value), name)
		}
	}
	if is != "" {
		value = fmt.Sprintf("%s ? %s : null", is, asString(value))
	}
	if value == name { // a constant
		return value
	}
	return "try(" + value + ", null)"
}

// adKey is the value that an entry names; ok is false where bursar cannot have it.
func (c *conversion) adKey(b *body, t tree) (value string, ok bool) {
	switch k := t.subtree("key").plainText(); {
	case attribute.MatchString(k):
		return adText(k), true
	case sum.MatchString(k):
		return inside.ReplaceAllStringFunc(k, func(name string) string { return "tonumber(" + adText(name) + ")" }), true
	case k != "":
		b.writeComment("The ClassAd expression %s has no equal here: write it with job.ad", k)
		c.noteChanged("key "+k, "an expression that condor_history evaluates", "not converted: write it with job.ad")
		return "", false
	case t.hasKey("factor"):
		return t.subtree("factor").plainText(), true
	}
	return quoteText(t.subtree("name").plainText()), true
}

// adCondition is an only_if; "" where there is none.
func (c *conversion) adCondition(t tree) string {
	if !t.isThere() {
		return ""
	}
	p, text := t.subtree("matches").plainText(), adText(t.subtree("key").plainText())
	if _, err := hcl.CompilePattern(p); err != nil {
		c.noteChanged("only_if.matches "+p, "a pattern of Python", "not converted, and the condition is false: write an expression with regex()")
		return "false"
	}
	return fmt.Sprintf("can(regex(%s, %s))", quoteText(p), text)
}

// adText is an attribute as AUDITOR sees it: the text that condor_history -af prints, by a
// name in any case.
func adText(name string) string { return "job.ad_text[" + quoteText(strings.ToLower(name)) + "]" }

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
	name, k := t.subtree("name").plainText(), t.subtree("key").plainText()
	value := c.adExpression(b, t)
	if value == "null" {
		t.subtree("scores")
		c.noteChanged("component "+name, k, "left out")
		return
	}
	b.openBlock("component", name)
	b.writeAttribute("amount", "floor(tonumber("+value+"))")
	if slices.Contains([]string{"TotalCPU", "UserCPU", "SystemCPU"}, name) || strings.HasPrefix(k, "Remote") && cpuTime.MatchString(k) {
		b.writeAttribute("kind", `"total"`)
	}
	for _, s := range t.subtree("scores").listElements() {
		b.openBlock("score", s.subtree("name").plainText())
		b.writeAttribute("value", "coalesce(try(tonumber("+c.adExpression(b, s)+"), null), 0)")
		b.closeBlock()
	}
	b.closeBlock()
}
