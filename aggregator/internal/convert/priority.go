package convert

import (
	"regexp"
	"strings"
)

func priorityFile(in *Input, t tree) bool {
	return t.hasKey("group_mapping") || strings.Contains(in.Name, "priority") && hasAnyKey("auditor", "commands", "components", "min_priority", "max_priority")(in, t)
}

// convertPriority converts the configuration of AUDITOR's priority plugin.
func (c *conversion) convertPriority(_ *Input, t tree) error {
	b := &c.blocks
	b.openBlock("action", "priority", "auditor")
	b.writeText("schedule", secondsExpression(t.subtree("frequency")))
	if !t.hasKey("frequency") {
		b.writeText("schedule", "1h")
	}
	b.writeComment("The programs run on the node that leads, or, with the agent's leave, on a head node: run_on = agent.head1")
	b.openBlock("config")
	var components []entry
	for _, p := range t.subtree("components").listPairs() {
		components = append(components, entry{p.key, quoteText(p.value.plainText())})
	}
	b.writeAttribute("components", objectExpression(components))
	b.writeText("lookback", secondsExpression(t.subtree("duration")))
	b.writeComment("AUDITOR's rule: all of the runs that began in the look-back. With \"spread\", the default, what was used in it.")
	b.writeText("credit", "start")
	mode := "scaled_by_sum"
	if t.subtree("computation_mode").plainText() == "FullSpread" {
		mode = "full_spread"
	}
	b.writeText("mode", mode)
	b.writeAttribute("priority", "{ min = "+t.subtree("min_priority").textOr("0")+", max = "+t.subtree("max_priority").textOr("1024")+" }")
	c.writeCommands(b, t.subtree("commands"))
	for _, p := range t.subtree("group_mapping").listPairs() {
		b.openBlock("group", p.key)
		b.writeTexts("params", p.value.listTexts())
		b.closeBlock()
	}
	b.closeBlock()
	c.leftOver(b, t, map[string]string{
		"auditor": "the action asks its own cluster", "timeout": "of a question to AUDITOR; that of a program is timeout in config",
		"prometheus": "the leader's /metrics has bursar_action_priority_resource_usage and bursar_action_priority_priority",
		"tls_config": "the action asks its own cluster", "log_level": "see log { level } in the block aggregator", "logging": "the journal keeps the log",
	})
	b.closeBlock()
	c.noteChanged("priority where nothing was used", "0 for each group", "min for each group")
	c.noteChanged("commands", "all of them, each time, one failure ends the round", "only where the priority is another; each group for itself")
	return nil
}

// shells are programs that take a command as a text.
var shells = regexp.MustCompile(`^(?:.*/)?(?:ba|da|z|k|c|tc)?sh$|^(?:.*/)?(?:python|perl|ruby)[0-9.]*$`)

// writeCommands writes the commands of the priority plugin.
func (c *conversion) writeCommands(b *body, t tree) {
	var lines []string
	for _, line := range t.listTexts() {
		words := shellWords(line)
		switch {
		case len(words) == 0:
			continue
		case strings.Contains(line, "{resource}"):
			b.writeComment("left out, since there is no {resource} (bursar actions history shows the usage): %s", line)
			c.noteChanged("commands", line, "left out: there is no {resource}")
		case shells.MatchString(words[0]):
			b.writeComment("left out, since a program that runs text is refused; put the line into a script and name that: %s", line)
			c.noteChanged("commands", line, "left out: put it into a script")
		default:
			lines = append(lines, listExpression(words))
		}
	}
	switch {
	case len(lines) == 1:
		b.writeAttribute("command", lines[0])
	case len(lines) > 1:
		b.writeAttribute("commands", "[\n"+strings.Join(lines, ",\n")+",\n]")
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
