package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Plan says which columns to ask this sacct for, and makes values from them.
type Plan struct {
	// Columns are what to ask for; text that users write stands last.
	Columns []string
	// Steps says that a value that is wanted depends on the steps of a job, also
	// where sacct shows it in the job's row: without them it is nothing.
	Steps bool
	// Part is what the nodes say of shares of cards; nil where they are not asked.
	Part Part

	index  map[string]int
	wanted []bool // by attribute
	table  []attribute
}

// Those without which a row tells nothing.
func requiredColumns() []string {
	return []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End"}
}

// Those that every run has use for where they exist.
func usefulColumns() []string {
	return []string{"Cluster", "Restarts", "AllocNodes", "AllocTRES", "NodeList", "ElapsedRaw",
		"User", "UID", "Group", "GID", "Account", "Partition"}
}

// What users write, and what holds it.
func freeTextColumns() []string {
	return []string{"JobName", "WorkDir", "WCKey", "Container", "StdErr", "StdIn", "StdOut", "SystemComment",
		"AdminComment", "Extra", "SubmitLine", "Comment"}
}

// Columns that sacct makes from the steps of a job.
func ofSteps() []string {
	return append([]string{"TotalCPU", "UserCPU", "SystemCPU", "ConsumedEnergyRaw", "TRESUsageInTot", "TRESUsageOutTot",
		"ReqCPUFreqMin", "ReqCPUFreqMax", "ReqCPUFreqGov", "DerivedExitCode"}, largestColumns()...)
}

// NewPlan plans for the attributes that wants names, of an sacct that has the
// available columns. It fails when a column is missing that no row can do without.
func NewPlan(wants func(attribute string) bool, available []string) (*Plan, error) {
	p := &Plan{table: attributeTable(), index: map[string]int{}}
	ask := map[string]bool{}
	for _, name := range append(requiredColumns(), usefulColumns()...) {
		ask[name] = true
	}
	for i := range p.table {
		a := &p.table[i]
		p.wanted = append(p.wanted, wants(a.Name))
		for _, column := range a.columns {
			ask[column] = ask[column] || p.wanted[i]
			p.Steps = p.Steps || p.wanted[i] && slices.Contains(ofSteps(), column)
		}
		p.Steps = p.Steps || p.wanted[i] && a.Name == "steps"
	}
	// Slurm has not always written names alike.
	spelled := map[string]string{}
	for _, name := range available {
		spelled[strings.ToLower(name)] = name
	}
	for _, name := range requiredColumns() {
		if spelled[strings.ToLower(name)] == "" {
			return nil, fmt.Errorf("this sacct has no column %s", name)
		}
	}
	p.orderColumns(ask, spelled)
	return p, nil
}

func (p *Plan) orderColumns(ask map[string]bool, spelled map[string]string) {
	var names []string
	for name, yes := range ask {
		if yes && spelled[strings.ToLower(name)] != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := columnPlace(a) - columnPlace(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		p.index[name] = i
		p.Columns = append(p.Columns, spelled[strings.ToLower(name)])
	}
}

// columnPlace puts what every row needs first and free text last.
func columnPlace(column string) int {
	if i := slices.Index(requiredColumns(), column); i >= 0 {
		return i
	}
	return 100 + slices.Index(freeTextColumns(), column)
}

// Values returns the values of a run in the order of the attributes; those that are not
// wanted, not known or not readable are null. Unread names the wanted ones that cannot be
// read, with the column.
func (p *Plan) Values(r *Run) (values []sdk.Value, unread []sdk.Unread) {
	values = make([]sdk.Value, len(p.table))
	for i := range p.table {
		if !p.wanted[i] {
			continue
		}
		v, err := p.table[i].value(r)
		if err != nil {
			unread = append(unread, sdk.Unread{Attribute: p.table[i].Name, Problem: err.Error()})
		}
		values[i] = v
	}
	return values, unread
}

// Attributes are those that a mapping may name.
func Attributes() []sdk.Attribute {
	all := attributeTable()
	out := make([]sdk.Attribute, len(all))
	for i := range all {
		out[i] = all[i].Attribute
	}
	return out
}

// attribute is one line of the table.
type attribute struct {
	sdk.Attribute
	columns []string // what it is made from
	// value is null with an error, or a map without what cannot be read.
	value func(*Run) (sdk.Value, error)
}

func attributeTable() []attribute {
	return slices.Concat(derivedAttributes(), jobstatsAttributes(), textAttributes(), numberAttributes(), timeAttributes(), cpuTimes(), largestAttributes())
}
