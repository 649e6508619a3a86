package compat

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ClusterAccountant has the original files of that program: its tables, and the records
// of Grid Engine's accounting that it takes. ReadClusterAccountant makes it.
type ClusterAccountant struct {
	types         []nodeType
	clusters      []string // of types, as they come; what is of none counts for the first
	people        []investigator
	projects      map[string]string // Unix group: user id of the investigator
	order         []string          // Unix groups as they come
	contributions []contribution
	records       []accounted
	dropped       map[string]int // why lines were not taken
	strangers     map[string]int // hosts of no type
	seen          map[string]bool
}

type nodeType struct {
	installed time.Time
	pattern   *regexp.Regexp
	number    *big.Rat // processors of all nodes
	factor    *big.Rat
	cluster   string
	disabled  bool
}

type investigator struct {
	user, alias string
	exempt      bool
}

type contribution struct {
	credit string
	units  *big.Rat
}

// accounted is a record that is taken.
type accounted struct {
	host, group, owner string
	end                time.Time
	units              *big.Rat // computation units: factor × CPU seconds
	cluster            string
}

// ReadClusterAccountant reads a dump of ClusterAccountant's tables, and files of Grid
// Engine's accounting as that program does: what its table accounting has comes first, and
// of the files, what is behind a "#", and lines that have
// not exactly 43 fields, are dropped, as are records with neither an end nor CPU time,
// and all but the first of a job, task and part. Days begin by the clock of zone.
func ReadClusterAccountant(tables io.Reader, accounting []io.Reader, zone *time.Location) (*ClusterAccountant, error) {
	c := newClusterAccountant()
	if err := c.readTables(tables, zone); err != nil {
		return nil, fmt.Errorf("the tables of ClusterAccountant: %w", err)
	}
	if err := c.checkFilled(); err != nil {
		return nil, fmt.Errorf("the tables of ClusterAccountant: %w", err)
	}
	if len(accounting) == 0 && len(c.records) == 0 {
		return nil, errors.New("the dump has no rows of the table accounting: dump it too, or name files of Grid Engine's accounting")
	}
	for _, file := range accounting {
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			if err := c.addLine(lines.Text()); err != nil {
				return nil, fmt.Errorf("line %d of the accounting: %w", n, err)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("the accounting: %w", err)
		}
	}
	return c, nil
}

func newClusterAccountant() *ClusterAccountant {
	return &ClusterAccountant{projects: map[string]string{}, dropped: map[string]int{}, strangers: map[string]int{}, seen: map[string]bool{}}
}

// The columns of each table, in the order of its definition.
func accountantTables() map[string][]string {
	return map[string][]string{
		"accounting":             nil, // its CREATE TABLE statement says
		"principal_investigator": {"uid", "userid", "first_name", "last_name", "alias", "email_address", "exempt"},
		"project":                {"gid", "groupid", "pi_owner_userid"},
		"processor_type":         {"id", "date_installed", "regex", "processor_type", "processor_qty", "node_qty", "su_charge", "cluster", "disabled"},
		"contribution":           {"id", "date_contributed", "contributor_userid", "credited_to_userid", "host_name", "processor_type", "no_of_processors", "split_percentage", "su_charge"},
	}
}

// mostTables is how many bytes a dump may have; the table accounting has about 100 a row.
const mostTables = 1 << 30

// allOf reads a text of at most so many bytes. A longer one is an error: what is cut
// from it would be missing in the figures.
func allOf(r io.Reader, most int64) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return "", err
	}
	if int64(len(text)) > most {
		return "", fmt.Errorf("the dump has more than %d bytes; dump only the tables %s", most, strings.Join(slices.Sorted(maps.Keys(accountantTables())), ", "))
	}
	return string(text), nil
}

// readTables takes the rows of the tables.
func (c *ClusterAccountant) readTables(r io.Reader, zone *time.Location) error {
	text, err := allOf(r, mostTables)
	if err != nil {
		return err
	}
	var rows []accountingRow // until all types of nodes are known
	err = readInserts(text, accountantTables(), func(table string, row sqlRow) error {
		switch table {
		case "accounting":
			rows = append(rows, accountingRow{
				host: row["hostname"], group: row["_group"], owner: row["owner"], end: row["end_time"], cpu: row["cpu"],
				key: row["job_number"] + ":" + row["task_number"] + ":" + row["pe_taskid"],
			})
		case "principal_investigator":
			c.people = append(c.people, investigator{user: row["userid"], alias: cmp.Or(row["alias"], row["userid"]), exempt: row.truthOf("exempt")})
		case "project":
			if _, twice := c.projects[row["groupid"]]; !twice {
				c.projects[row["groupid"]] = row["pi_owner_userid"]
				c.order = append(c.order, row["groupid"])
			}
		case "processor_type":
			return c.addNodes(row, zone)
		case "contribution":
			units, err := row.productOf("no_of_processors", "split_percentage", "su_charge")
			if err != nil {
				return err
			}
			c.contributions = append(c.contributions, contribution{credit: cmp.Or(row["credited_to_userid"], row["contributor_userid"]), units: units})
		}
		return nil
	})
	for i := 0; err == nil && i < len(rows); i++ {
		if err = c.addRow(rows[i]); err != nil {
			err = fmt.Errorf("row %d of accounting: %w", i+1, err)
		}
	}
	return err
}

// ReadTables calls take for each row of ClusterAccountant's tables in a dump, but for
// those of accounting: the values by column, NULL as "". It calls passed for statements that
// may change rows and are passed over, for each kind once.
func ReadTables(dump string, take func(table string, row map[string]string) error, passed func(line int, statement string)) error {
	tables := accountantTables()
	delete(tables, "accounting")
	s := &sqlScanner{text: dump, passed: passed, named: map[string]bool{"insert into accounting": true, ";": true}}
	for word := range strings.FieldsSeq("create drop lock unlock set use begin start commit") {
		s.named[word] = true
	}
	return s.readInserts(tables, func(table string, row sqlRow) error { return take(table, row) })
}

// accountingRow is what is read of a record; key names its job, task and part.
type accountingRow struct{ host, group, owner, end, cpu, key string }

// checkFilled returns an error that names the tables without rows of which a report is made.
// Contributions may be missing: then there are no ratios.
func (c *ClusterAccountant) checkFilled() error {
	var missing []string
	for _, table := range []struct {
		name string
		rows int
	}{{"principal_investigator", len(c.people)}, {"project", len(c.projects)}, {"processor_type", len(c.types)}} {
		if table.rows == 0 {
			missing = append(missing, table.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no INSERT statement of the dump has rows for %s; dump the tables with their data, as mysqldump does", strings.Join(missing, " and "))
	}
	if len(c.clusters) == 0 {
		c.clusters = []string{"all"}
	}
	return nil
}

func (c *ClusterAccountant) addNodes(row sqlRow, zone *time.Location) error {
	// The first match counts that begins where the name does.
	pattern, err := regexp.Compile(`\A(?:` + row["regex"] + `)`)
	if err != nil {
		return fmt.Errorf("processor_type: the regex %q: %w", row["regex"], err)
	}
	installed, err := time.ParseInLocation(time.DateOnly, strings.TrimSpace(firstOf(row["date_installed"], 10)), zone)
	if err != nil {
		return fmt.Errorf("processor_type: the date %q is not like 2012-10-05", row["date_installed"])
	}
	number, err := row.productOf("processor_qty", "node_qty")
	if err != nil {
		return err
	}
	factor, err := row.productOf("su_charge")
	if err != nil {
		return err
	}
	if cluster := row["cluster"]; cluster != "" && !slices.Contains(c.clusters, cluster) {
		c.clusters = append(c.clusters, cluster)
	}
	c.types = append(c.types, nodeType{installed: installed, pattern: pattern, number: number, factor: factor, cluster: row["cluster"], disabled: row.truthOf("disabled")})
	return nil
}

// firstOf cuts a text to so many bytes.
func firstOf(s string, n int) string { return s[:min(len(s), n)] }

// The places of fields in a line of accounting(5).
const (
	fieldHost  = 1
	fieldGroup = 2
	fieldOwner = 3
	fieldJob   = 5
	fieldEnd   = 10
	fieldTask  = 35
	fieldCPU   = 36
	fieldPart  = 41
	allFields  = 43
)

// addLine takes a line of the accounting, or counts why not.
func (c *ClusterAccountant) addLine(text string) error {
	f := strings.Split(strings.TrimRight(text, ":"), ":") // empty fields at the end disappear, as in Java
	switch {
	case text == "":
		c.dropped["empty lines, at which ClusterAccountant breaks off"]++
		return nil
	case text[0] == '#':
		c.dropped["comments"]++
		return nil
	case len(f) != allFields:
		c.dropped["lines that have not 43 fields"]++
		return nil
	}
	return c.addRow(accountingRow{
		host: f[fieldHost], group: f[fieldGroup], owner: f[fieldOwner], end: f[fieldEnd], cpu: f[fieldCPU],
		key: f[fieldJob] + ":" + f[fieldTask] + ":" + f[fieldPart],
	})
}

// addRow takes a record, or counts why not.
func (c *ClusterAccountant) addRow(r accountingRow) error {
	end, err := strconv.ParseInt(r.end, 10, 64)
	if err != nil {
		return fmt.Errorf("invalid end %q: must be seconds since 1970", r.end)
	}
	cpu := v1.Rational(r.cpu)
	if cpu == nil {
		return fmt.Errorf("invalid CPU seconds %q: must be a number", r.cpu)
	}
	switch {
	case end == 0 && cpu.Sign() == 0:
		c.dropped["records with neither an end nor CPU time"]++
		return nil
	case c.seen[r.key]:
		c.dropped["further records of a job, task and part"]++
		return nil
	}
	c.seen[r.key] = true
	factor, cluster := c.worthOf(r.host)
	c.records = append(c.records, accounted{
		host: r.host, group: r.group, owner: r.owner, end: time.Unix(end, 0), units: cpu.Mul(cpu, factor), cluster: cluster,
	})
	return nil
}

// worthOf is the factor of a host, and its cluster: of the first type that matches,
// whatever its date, and whether or not it is disabled.
func (c *ClusterAccountant) worthOf(host string) (*big.Rat, string) {
	for i := range c.types {
		if t := &c.types[i]; t.pattern.MatchString(host) {
			return t.factor, cmp.Or(t.cluster, c.clusters[0])
		}
	}
	c.strangers[host]++
	return big.NewRat(1, 1), c.clusters[0]
}

// sqlRow is a row of a table: the values as texts, NULL as an empty one.
type sqlRow map[string]string

func (r sqlRow) truthOf(column string) bool {
	return strings.EqualFold(r[column], "true") || r[column] == "1" || r[column] == "\x01"
}

// productOf multiplies numbers of a row.
func (r sqlRow) productOf(columns ...string) (*big.Rat, error) {
	out := big.NewRat(1, 1)
	for _, column := range columns {
		n := v1.Rational(r[column])
		if n == nil {
			return nil, fmt.Errorf("%s is %q, which is no number", column, r[column])
		}
		out.Mul(out, n)
	}
	return out, nil
}
