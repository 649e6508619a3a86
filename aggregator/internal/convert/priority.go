package convert

import (
	"regexp"
	"strings"
)

// priority converts the configuration of AUDITOR's priority plugin.
func (c *conversion) priority(_ *Input, t tree) error {
	b := &c.blocks
	b.open("action", "priority", "auditor")
	b.text("schedule", seconds(t.at("frequency")))
	if !t.has("frequency") {
		b.text("schedule", "1h")
	}
	b.comment("The programs run on the node that leads, or, with the agent's leave, on a head node: run_on = agent.head1")
	b.open("config")
	var components []entry
	for _, p := range t.at("components").pairs() {
		components = append(components, entry{p.key, quote(p.value.text())})
	}
	b.attr("components", object(components))
	b.text("lookback", seconds(t.at("duration")))
	b.comment("AUDITOR's rule: all of the runs that began in the look-back. With \"spread\", the default, what was used in it.")
	b.text("credit", "start")
	mode := "scaled_by_sum"
	if t.at("computation_mode").text() == "FullSpread" {
		mode = "full_spread"
	}
	b.text("mode", mode)
	b.attr("priority", "{ min = "+t.at("min_priority").or("0")+", max = "+t.at("max_priority").or("1024")+" }")
	c.commands(b, t.at("commands"))
	for _, p := range t.at("group_mapping").pairs() {
		b.open("group", p.key)
		b.texts("params", p.value.texts())
		b.close()
	}
	b.close()
	c.leftOver(b, t, map[string]string{
		"auditor": "the action asks its own cluster", "timeout": "of a question to AUDITOR; that of a program is timeout in config",
		"prometheus": "the leader's /metrics has bursar_action_priority_resource_usage and bursar_action_priority_priority",
		"tls_config": "the action asks its own cluster", "log_level": "see log { level } in the block aggregator", "logging": "the journal keeps the log",
	})
	b.close()
	c.changed("priority where nothing was used", "0 for each group", "min for each group")
	c.changed("commands", "all of them, each time, one failure ends the round", "only where the priority is another; each group for itself")
	return nil
}

// shells are programs that take a command as a text.
var shells = regexp.MustCompile(`^(?:.*/)?(?:ba|da|z|k|c|tc)?sh$|^(?:.*/)?(?:python|perl|ruby)[0-9.]*$`)

// commands writes the commands of the priority plugin.
func (c *conversion) commands(b *body, t tree) {
	var lines []string
	for _, line := range t.texts() {
		words := shellWords(line)
		switch {
		case len(words) == 0:
			continue
		case strings.Contains(line, "{resource}"):
			b.comment("left out, since there is no {resource} (bursar actions history shows the usage): %s", line)
			c.changed("commands", line, "left out: there is no {resource}")
		case shells.MatchString(words[0]):
			b.comment("left out, since a program that runs text is refused; put the line into a script and name that: %s", line)
			c.changed("commands", line, "left out: put it into a script")
		default:
			lines = append(lines, list(words))
		}
	}
	switch {
	case len(lines) == 1:
		b.attr("command", lines[0])
	case len(lines) > 1:
		b.attr("commands", "[\n"+strings.Join(lines, ",\n")+",\n]")
	}
}

// shellWords cuts a line as a shell does, with quotes and backslashes.
func shellWords(line string) (words []string) {
	var word strings.Builder
	var mark rune
	inside, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && mark != '\'':
			escaped, inside = true, true
		case mark != 0:
			if r == mark {
				mark = 0
			} else {
				word.WriteRune(r)
			}
		case r == '"' || r == '\'':
			mark, inside = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inside {
				words = append(words, word.String())
				word.Reset()
			}
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words
}
