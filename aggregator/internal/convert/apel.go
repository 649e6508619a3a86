package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// apel converts the configuration of AUDITOR's APEL plugin.
func (c *conversion) apel(_ *Input, t tree) error {
	b := &c.blocks
	b.open("action", "apel", "auditor")
	b.text("schedule", seconds(t.at("plugin", "report_interval")))
	b.open("config")
	b.comment("The first month that bursar reports: let AUDITOR's plugin send those before, since the receiver replaces a month by what is sent.")
	first := c.now.UTC().AddDate(0, 0, 1-c.now.UTC().Day()).AddDate(0, 1, 0)
	b.text("from", first.Format("2006-01"))
	if keys := t.at("auditor", "site_meta_field").texts(); !slices.Equal(keys, []string{"site_id"}) {
		b.texts("site_meta", keys)
	}
	for _, site := range t.at("site", "sites_to_report").pairs() {
		b.open("site", site.key)
		b.texts("ids", site.value.texts())
		b.close()
	}
	c.apelFields(b, t)
	messaging := t.at("messaging")
	b.open("sign")
	b.text("cert", messaging.at("client_cert").text())
	b.text("key", messaging.at("client_key").text())
	b.close()
	b.open("ams")
	b.text("host", messaging.at("host").text())
	b.attr("authn_port", messaging.at("port").text())
	b.text("project", messaging.at("project").text())
	b.text("topic", messaging.at("topic").text())
	b.text("timeout", seconds(messaging.at("timeout")))
	b.close()
	b.close()
	c.leftOver(b, t, map[string]string{
		"plugin.time_json_path": "what was sent is part of the replicated state", "plugin": "the journal keeps the log", "messaging.retry": "failures are tried again until the next run",
		"auditor": "the action asks its own cluster", "summary_fields": "bursar has no such field",
	})
	b.close()
	c.changed("report_interval", "from this or the last month on; a longer outage leaves a gap", "all months since the last run")
	c.changed("a record without a mandatory field", "the plugin breaks off", "the record is listed in the run's notes; the others are sent")
	c.changed("InfrastructureDescription", "AUDITOR_VERSION-CE-COLLECTORS", "BURSAR-CE-COLLECTOR, of the jobs of the row; the receiver takes it for the same row")
	return nil
}

// apelFields writes the fields and the benchmark.
func (c *conversion) apelFields(b *body, t tree) {
	fields := slices.Concat(t.at("summary_fields", "mandatory").pairs(), t.at("summary_fields", "optional").pairs())
	normalised := map[string]string{}
	b.open("fields")
	for _, f := range fields {
		expression, err := apelField(f.value)
		if err != nil {
			b.comment("%s: %v", f.key, err)
			c.changed("summary_fields."+f.key, f.value.show(), fmt.Sprintf("not converted: %v", err))
			continue
		}
		if strings.HasPrefix(f.key, "Normalised") {
			normalised[f.key] = expression
			continue
		}
		if strings.Contains(expression, "TotalCPU") && strings.Contains(expression, "/ 1000") {
			b.comment("Of records in milliseconds only, as AUDITOR's Slurm collector made them before 0.11: bursar's sources and newer collectors give seconds.")
			c.changed("divide_by: 1000 of TotalCPU", "milliseconds, of collectors before 0.11", "kept; records in seconds need no division")
		}
		b.attr(f.key, expression)
	}
	b.close()
	b.open("benchmark", t.at("site", "benchmark_type").or("HEPscore23"))
	b.attr("wall", normalised["NormalisedWallDuration"])
	b.attr("cpu", normalised["NormalisedCpuDuration"])
	b.close()
}

// apelField is the expression of a field over record.
func apelField(t tree) (string, error) {
	name := t.at("name").text()
	switch t.tag() {
	case "ComponentField":
		amount := "record.components" + member(name) + ".amount"
		if by := t.at("divide_by").text(); by != "" {
			return fmt.Sprintf("round(%s / %s)", amount, by), nil
		}
		return amount, nil
	case "ScoreField":
		return score(t), nil
	case "ConstantField":
		return quote(t.at("value").text()), nil
	case "RecordField":
		return recordField(name, t)
	case "MetaField":
		return metaField(t)
	case "NormalisedField", "NormalisedWallDurationField":
		base := "record.runtime"
		if t.has("base_value") {
			var err error
			if base, err = apelField(t.at("base_value")); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("round(%s * %s)", base, score(t.at("score"))), nil
	}
	return "", fmt.Errorf("unknown field type %q", t.tag())
}

func score(t tree) string {
	return "record.components" + member(t.at("component_name").text()) + ".scores" + member(t.at("name").text())
}

func recordField(name string, t tree) (string, error) {
	if t.has("modify") {
		return "", fmt.Errorf("modify %s has no equal; write an expression", t.at("modify").show())
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
	value := "record.meta" + member(t.at("name").text()) + "[0]"
	if p := t.at("regex").text(); p != "" {
		rewritten, group, err := withoutLookaround(p)
		if err != nil {
			return "", err
		}
		value = fmt.Sprintf("regex(%s, %s)", quote(rewritten), value)
		if group {
			value += "[0]"
		}
	}
	if !t.has("function") {
		return fmt.Sprintf("try(%s, %s)", value, quote("None")), nil
	}
	function := t.at("function")
	if name := function.at("name").text(); name != "vo_mapping" {
		return "", fmt.Errorf("unknown function %q", name)
	}
	var vos []entry
	for _, p := range function.at("parameters").pairs() {
		vos = append(vos, entry{p.key, quote(p.value.text())})
	}
	return fmt.Sprintf("lookupprefix(%s, try(%s, %s), %s)", object(vos), value, quote(""), quote("None")), nil
}

// A group of a pattern that captures; one within brackets is not looked for, since
// AUDITOR's patterns have none.
var capturing = regexp.MustCompile(`(^|[^\\])\(([^?]|$)`)

// withoutLookaround rewrites a pattern of Python's for RE2. What is in front of and behind
// the match is part of the pattern then, and the match is its one group.
func withoutLookaround(p string) (rewritten string, group bool, err error) {
	middle, before, after := p, "", ""
	for _, look := range []struct{ prefix, keep string }{{"(?<=", "before"}, {"(?=", "of it"}} {
		if inner, rest, ok := parenthesis(middle, look.prefix); ok {
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
		inner, rest, ok := parenthesis(middle[i:], "(?=")
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

// parenthesis cuts off a group with which a pattern begins.
func parenthesis(p, prefix string) (inner, rest string, ok bool) {
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
