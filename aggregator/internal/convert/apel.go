package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// convertApel converts the configuration of AUDITOR's APEL plugin.
func (c *conversion) convertApel(_ *Input, t tree) error {
	b := &c.blocks
	b.openBlock("action", "apel", "auditor")
	b.writeText("schedule", secondsExpression(t.subtree("plugin", "report_interval")))
	b.openBlock("config")
	b.writeComment("The first month that bursar reports: let AUDITOR's plugin send those before, since the receiver replaces a month by what is sent.")
	first := c.now.UTC().AddDate(0, 0, 1-c.now.UTC().Day()).AddDate(0, 1, 0)
	b.writeText("from", first.Format("2006-01"))
	if keys := t.subtree("auditor", "site_meta_field").listTexts(); !slices.Equal(keys, []string{"site_id"}) {
		b.writeTexts("site_meta", keys)
	}
	for _, site := range t.subtree("site", "sites_to_report").listPairs() {
		b.openBlock("site", site.key)
		b.writeTexts("ids", site.value.listTexts())
		b.closeBlock()
	}
	c.apelFields(b, t)
	messaging := t.subtree("messaging")
	b.openBlock("sign")
	b.writeText("cert", messaging.subtree("client_cert").plainText())
	b.writeText("key", messaging.subtree("client_key").plainText())
	b.closeBlock()
	b.openBlock("ams")
	b.writeText("host", messaging.subtree("host").plainText())
	b.writeAttribute("authn_port", messaging.subtree("port").plainText())
	b.writeText("project", messaging.subtree("project").plainText())
	b.writeText("topic", messaging.subtree("topic").plainText())
	b.writeText("timeout", secondsExpression(messaging.subtree("timeout")))
	b.closeBlock()
	b.closeBlock()
	c.leftOver(b, t, map[string]string{
		"plugin.time_json_path": "what was sent is part of the replicated state", "plugin": "the journal keeps the log", "messaging.retry": "failures are tried again until the next run",
		"auditor": "the action asks its own cluster", "summary_fields": "bursar has no such field",
	})
	b.closeBlock()
	c.noteChanged("report_interval", "from this or the last month on; a longer outage leaves a gap", "all months since the last run")
	c.noteChanged("a record without a mandatory field", "the plugin breaks off", "the record is listed in the run's notes; the others are sent")
	c.noteChanged("InfrastructureDescription", "AUDITOR_VERSION-CE-COLLECTORS", "BURSAR-CE-COLLECTOR, of the jobs of the row; the receiver takes it for the same row")
	return nil
}

// apelFields writes the fields and the benchmark.
func (c *conversion) apelFields(b *body, t tree) {
	fields := slices.Concat(t.subtree("summary_fields", "mandatory").listPairs(), t.subtree("summary_fields", "optional").listPairs())
	normalised := map[string]string{}
	b.openBlock("fields")
	for _, f := range fields {
		expression, err := apelField(f.value)
		if err != nil {
			b.writeComment("%s: %v", f.key, err)
			c.noteChanged("summary_fields."+f.key, f.value.showValue(), fmt.Sprintf("not converted: %v", err))
			continue
		}
		if strings.HasPrefix(f.key, "Normalised") {
			normalised[f.key] = expression
			continue
		}
		if strings.Contains(expression, "TotalCPU") && strings.Contains(expression, "/ 1000") {
			b.writeComment("Of records in milliseconds only, as AUDITOR's Slurm collector made them before 0.11: bursar's sources and newer collectors give seconds.")
			c.noteChanged("divide_by: 1000 of TotalCPU", "milliseconds, of collectors before 0.11", "kept; records in seconds need no division")
		}
		b.writeAttribute(f.key, expression)
	}
	b.closeBlock()
	b.openBlock("benchmark", t.subtree("site", "benchmark_type").textOr("HEPscore23"))
	b.writeAttribute("wall", normalised["NormalisedWallDuration"])
	b.writeAttribute("cpu", normalised["NormalisedCpuDuration"])
	b.closeBlock()
}

// apelField is the expression of a field over record.
func apelField(t tree) (string, error) {
	name := t.subtree("name").plainText()
	switch t.yamlTag() {
	case "ComponentField":
		amount := "record.components" + memberExpression(name) + ".amount"
		if by := t.subtree("divide_by").plainText(); by != "" {
			return fmt.Sprintf("round(%s / %s)", amount, by), nil
		}
		return amount, nil
	case "ScoreField":
		return scoreExpression(t), nil
	case "ConstantField":
		return quoteText(t.subtree("value").plainText()), nil
	case "RecordField":
		return recordField(name, t)
	case "MetaField":
		return metaField(t)
	case "NormalisedField", "NormalisedWallDurationField":
		base := "record.runtime"
		if t.hasKey("base_value") {
			var err error
			if base, err = apelField(t.subtree("base_value")); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("round(%s * %s)", base, scoreExpression(t.subtree("score"))), nil
	}
	return "", fmt.Errorf("unknown field type %q", t.yamlTag())
}

func scoreExpression(t tree) string {
	return "record.components" + memberExpression(t.subtree("component_name").plainText()) + ".scores" + memberExpression(t.subtree("name").plainText())
}

func recordField(name string, t tree) (string, error) {
	if t.hasKey("modify") {
		return "", fmt.Errorf("modify %s has no equal; write an expression", t.subtree("modify").showValue())
	}
	switch name {
	case "runtime":
		return "record.runtime", nil
	case "record_id":
		return "record.id", nil
	case "start_time", "stop_time":
		return "unix(record." + name + ")", nil
	}
	return "", fmt.Errorf("unknown attribute %q of a record", name)
}

// metaField takes the first value; AUDITOR's word for none is None.
func metaField(t tree) (string, error) {
	value := "record.meta" + memberExpression(t.subtree("name").plainText()) + "[0]"
	if p := t.subtree("regex").plainText(); p != "" {
		rewritten, group, err := withoutLookaround(p)
		if err != nil {
			return "", err
		}
		value = fmt.Sprintf("regex(%s, %s)", quoteText(rewritten), value)
		if group {
			value += "[0]"
		}
	}
	if !t.hasKey("function") {
		return fmt.Sprintf("try(%s, %s)", value, quoteText("None")), nil
	}
	function := t.subtree("function")
	if name := function.subtree("name").plainText(); name != "vo_mapping" {
		return "", fmt.Errorf("unknown function %q", name)
	}
	var vos []entry
	for _, p := range function.subtree("parameters").listPairs() {
		vos = append(vos, entry{p.key, quoteText(p.value.plainText())})
	}
	return fmt.Sprintf("lookupprefix(%s, try(%s, %s), %s)", objectExpression(vos), value, quoteText(""), quoteText("None")), nil
}

// A group of a pattern that captures; one within brackets is not looked for, since
// AUDITOR's patterns have none.
var capturing = regexp.MustCompile(`(^|[^\\])\(([^?]|$)`)

// withoutLookaround rewrites a pattern of Python's for RE2. What is in front of and behind
// the match is part of the pattern then, and the match is its one group.
func withoutLookaround(p string) (rewritten string, group bool, err error) {
	middle, before, after := p, "", ""
	for _, look := range []struct{ prefix, keep string }{{"(?<=", "before"}, {"(?=", "of it"}} {
		if inner, rest, ok := cutParenthesis(middle, look.prefix); ok {
			middle = rest
			if look.keep == "before" {
				before = inner
			} else if strings.HasPrefix(rest, ".*") {
				middle = "(?:" + inner + ")" + rest
			} else {
				return "", false, fmt.Errorf("the pattern %s looks ahead, which RE2 cannot; write an expression with regex()", p)
			}
			break
		}
	}
	if i := strings.LastIndex(middle, "(?="); i >= 0 {
		inner, rest, ok := cutParenthesis(middle[i:], "(?=")
		if ok && rest == "" {
			middle, after = middle[:i], "(?:"+inner+")"
		}
	}
	middle = capturing.ReplaceAllString(middle, "$1(?:$2")
	if before == "" && after == "" {
		rewritten = middle
	} else {
		rewritten, group = capturing.ReplaceAllString(before, "$1(?:$2")+"("+middle+")"+after, true
	}
	if _, err := regexp.Compile(rewritten); err != nil {
		return "", false, fmt.Errorf("the pattern %s cannot be written for RE2; write an expression with regex()", p)
	}
	return rewritten, group, nil
}

// cutParenthesis cuts off a group with which a pattern begins.
func cutParenthesis(p, prefix string) (inner, rest string, ok bool) {
	if !strings.HasPrefix(p, prefix) {
		return "", p, false
	}
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return p[len(prefix):i], p[i+1:], true
			}
		}
	}
	return "", p, false
}
