package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/compat"
)

// convertTables converts a dump of ClusterAccountant's tables into the directory, the capacity and
// the service units.
func (c *conversion) convertTables(in *Input, _ tree) error {
	rows := map[string][]map[string]string{}
	err := compat.ReadTables(string(in.Text), func(table string, row map[string]string) error {
		if _, err := regexp.Compile(row["regex"]); table == "processor_type" && err != nil {
			return fmt.Errorf("processor_type: the regex %q: %w", row["regex"], err)
		}
		rows[table] = append(rows[table], row)
		return nil
	}, c.noteMisunderstood)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("no INSERT statement has rows of ClusterAccountant's tables; dump them with their data, as mysqldump does")
	}
	c.hostClasses(rows["processor_type"])
	exempt := map[string]bool{}
	for _, p := range rows["principal_investigator"] {
		exempt[p["userid"]] = parseTruth(p["exempt"])
		c.takePerson(p["userid"], p["first_name"]+" "+p["last_name"], p["email_address"])
	}
	for _, p := range rows["project"] {
		c.claimed = append(c.claimed, p["groupid"])
		c.blocks.openBlock("project", p["groupid"])
		c.blocks.writeText("pi", p["pi_owner_userid"])
		c.blocks.writeTexts("groups", []string{p["groupid"]})
		if exempt[p["pi_owner_userid"]] {
			c.blocks.writeAttribute("exempt", "true")
		}
		c.blocks.closeBlock()
	}
	c.writeContributions(rows["contribution"])
	c.noteChanged("charge of a job", "all of it at its end, CPU seconds × factor", "spread over the run; -credit stop for ClusterAccountant's rule")
	c.noteChanged("a contribution", "counts in every period", "counts from its date on")
	c.noteChanged("a job number that comes again", "dropped", "a record of its own")
	return nil
}

func parseTruth(text string) bool {
	return strings.EqualFold(text, "true") || text == "1" || text == "\x01"
}

// hostClasses writes what hosts are worth, and what clusters have.
func (c *conversion) hostClasses(types []map[string]string) {
	if len(types) == 0 {
		return
	}
	b, seen := &c.blocks, map[string]int{}
	b.WriteString("\n")
	b.writeComment("The first class counts whose pattern fits, as with ClusterAccountant.")
	var names []string
	clusters := map[string][]map[string]string{}
	for _, t := range types {
		b.openBlock("host_class", uniqueName(cmp.Or(t["processor_type"], "nodes"), seen))
		b.writeText("pattern", "^(?:"+t["regex"]+")")
		b.writeAttribute("su_factor", c.numberIn("processor_type", t, "su_charge"))
		b.closeBlock()
		name := cmp.Or(t["cluster"], "all")
		if clusters[name] == nil {
			names = append(names, name)
		}
		clusters[name] = append(clusters[name], t)
	}
	b.openBlock("service_units")
	b.writeComment("An hour of CPU time on a host of factor 1, or on one of no class.")
	b.writeAttribute("seconds", "{ TotalCPU = 1 }")
	b.writeAttribute("default_factor", "1")
	b.closeBlock()
	for _, name := range names {
		c.writeCluster(name, clusters[name])
	}
}

// writeCluster writes what a cluster has.
func (c *conversion) writeCluster(name string, types []map[string]string) {
	b := &c.blocks
	var hosts []string
	for _, t := range types {
		globs := globsOf(t["regex"])
		if globs == nil {
			b.WriteString("\n")
			b.writeComment("The pattern %s cannot be written with *: name the hosts of %s in its match.", t["regex"], name)
		}
		hosts = append(hosts, globs...)
	}
	b.openBlock("cluster", name)
	if len(hosts) > 0 {
		b.writeAttribute("match", "{ host = "+listExpression(sortedTexts(hosts))+" }")
	}
	for _, t := range types {
		if parseTruth(t["disabled"]) {
			b.writeComment("%s, %s nodes of %s processors, since %s, are disabled: ClusterAccountant leaves them out of all history. With a date in to, a block capacity says until when they were there.",
				t["processor_type"], t["node_qty"], t["processor_qty"], t["date_installed"])
			c.noteChanged("processor_type.disabled", "not in the capacity of any time", "left out too; add a block capacity with from and to")
			continue
		}
		b.openBlock("capacity")
		b.writeText("name", t["processor_type"])
		b.writeText("from", t["date_installed"][:min(len(t["date_installed"]), len("2012-10-05"))])
		b.writeAttribute("nodes", c.numberIn("processor_type", t, "node_qty"))
		if cores := c.numberIn("processor_type", t, "processor_qty"); cores != "" {
			b.writeAttribute("components", "{ Cores = "+cores+" }")
		} else {
			b.writeComment("The processors of a node are not known: set components.")
		}
		b.writeAttribute("su_factor", c.numberIn("processor_type", t, "su_charge"))
		b.closeBlock()
	}
	b.closeBlock()
}

// writeContributions writes who gave what.
func (c *conversion) writeContributions(rows []map[string]string) {
	b, seen := &c.blocks, map[string]int{}
	for _, r := range rows {
		b.openBlock("contribution", uniqueName(strings.TrimSpace(r["contributor_userid"]+" "+r["host_name"]), seen))
		b.writeText("by", r["contributor_userid"])
		if to := r["credited_to_userid"]; to != r["contributor_userid"] {
			b.writeText("credit", to)
		}
		b.writeAttribute("amount", c.numberIn("contribution", r, "no_of_processors"))
		if r["split_percentage"] != "100" {
			b.writeAttribute("split", c.numberIn("contribution", r, "split_percentage"))
		}
		b.writeAttribute("su_factor", c.numberIn("contribution", r, "su_charge"))
		b.writeText("from", r["date_contributed"][:min(len(r["date_contributed"]), len("2012-10-05"))])
		b.closeBlock()
	}
}

var number = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// numberIn is the number in a column of a row; "" where it has none, which is a problem but
// for NULL.
func (c *conversion) numberIn(table string, row map[string]string, column string) string {
	text := strings.TrimSpace(row[column])
	if number.MatchString(text) {
		return text
	}
	if text != "" {
		c.noteMissed(0, "%s of a row of %s is not a number", column, table)
	}
	return ""
}

// uniqueName numbers a name that comes again.
func uniqueName(name string, seen map[string]int) string {
	seen[name]++
	if n := seen[name]; n > 1 {
		return fmt.Sprintf("%s %d", name, n)
	}
	return name
}

// mostGlobs is how many patterns with * may take the place of a regular expression.
const mostGlobs = 64

// globsOf writes a regular expression for the beginning of a name with *; nil where that
// is not possible.
func globsOf(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	globs := expandPattern(re.Simplify(), []string{""})
	for i := range globs {
		globs[i] = strings.TrimRight(globs[i], "*") + "*"
	}
	return globs
}

// expandPattern appends what re matches to each of the texts; nil where that is too much.
func expandPattern(re *syntax.Regexp, texts []string) (out []string) {
	var ends []string
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpBeginText:
		return texts
	case syntax.OpLiteral:
		ends = []string{string(re.Rune)}
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1] && len(ends) <= mostGlobs; r++ {
				ends = append(ends, string(r))
			}
		}
	case syntax.OpStar:
		if re.Sub[0].Op != syntax.OpAnyCharNotNL {
			return nil
		}
		ends = []string{"*"}
	case syntax.OpCapture:
		return expandPattern(re.Sub[0], texts)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if texts = expandPattern(sub, texts); texts == nil {
				return nil
			}
		}
		return texts
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more := expandPattern(sub, texts)
			if more == nil {
				return nil
			}
			out = append(out, more...)
		}
		return out
	default:
		return nil
	}
	if len(ends)*len(texts) > mostGlobs {
		return nil
	}
	for _, t := range texts {
		for _, e := range ends {
			out = append(out, t+e)
		}
	}
	return out
}

// Lines of /etc/security/access.conf: the users and groups that log in, and that all others are refused.
var (
	accessLine = regexp.MustCompile(`(?m)^[ \t]*\+[ \t]*:[ \t]*([^:\n]+?)[ \t]*:[^:\n]*$`)
	accessEnd  = regexp.MustCompile(`(?m)^[ \t]*-[ \t]*:[ \t]*ALL[ \t]*:[ \t]*ALL[ \t\r]*$`)
)

func accessFile(in *Input, t tree) bool {
	return strings.HasSuffix(in.Name, "access.conf") || t.node == nil && accessLine.Match(in.Text)
}

// takeAccess takes the groups that may log in.
func (c *conversion) takeAccess(in *Input, _ tree) error {
	text := string(in.Text)
	known := accessEnd.FindAllStringIndex(text, -1)
	for _, at := range accessLine.FindAllStringSubmatchIndex(text, -1) {
		names := strings.Fields(text[at[2]:at[3]])
		if slices.ContainsFunc(names, func(n string) bool { return n == "ALL" || n == "EXCEPT" || n[0] == '@' }) {
			continue
		}
		for _, name := range names {
			c.accessed = append(c.accessed, strings.Trim(name, "()"))
		}
		known = append(known, at[:2])
	}
	eachBeside(text, known, c.noteMisunderstood)
	if len(c.accessed) == 0 {
		return fmt.Errorf("no line names a group, such as + : physics : ALL")
	}
	return nil
}

// compareGroups says which groups may log in and are of no project, and the other way
// round; ClusterAccountant does so at its start.
func (c *conversion) compareGroups() {
	if len(c.accessed) == 0 {
		return
	}
	c.blocks.WriteString("\n")
	for _, g := range sortedTexts(c.accessed) {
		if !slices.Contains(c.claimed, g) {
			c.blocks.writeComment("access.conf has the group %s, which is of no project.", g)
		}
	}
	for _, g := range sortedTexts(c.claimed) {
		if !slices.Contains(c.accessed, g) {
			c.blocks.writeComment("The group %s of a project is not in access.conf.", g)
		}
	}
	c.blocks.writeComment("bursar directory -unclaimed lists groups and users with usage that are of no project.")
}
