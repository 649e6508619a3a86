package source

import (
	"context"
	"strings"
	"sync"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
)

// database is an sacct without a process. It answers questions by id as the real one
// does.
type database struct {
	mu    sync.Mutex
	rows  []fakesacct.Row // jobs, each followed by its steps
	names []string        // of the columns
	err   error           // what every call says
	asked []sacct.Query
}

// change changes what the database holds while a source asks it.
func (d *database) change(f func(*database)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *database) Columns(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names, d.err
}

func (d *database) Rows(_ context.Context, q sacct.Query, yield func(sacct.Row) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, q)
	if d.err != nil {
		return d.err
	}
	wanted := map[string]bool{}
	for _, id := range q.Jobs {
		wanted[id] = true
	}
	mine := false
	for _, r := range d.rows {
		step := strings.Contains(r["JobIDRaw"], ".")
		if !step {
			array, _, _ := strings.Cut(r["JobID"], "_")
			het, _, _ := strings.Cut(r["JobID"], "+")
			mine = wanted[r["JobIDRaw"]] || wanted[r["JobID"]] || wanted[array] || wanted[het]
		}
		if !mine || step && !q.Steps {
			continue
		}
		row := sacct.Row{Cut: -1}
		for _, c := range q.Columns {
			row.Fields = append(row.Fields, r[c])
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// questions are the ids in each question that had columns of jobs, that is, not those
// that only look for earlier runs.
func (d *database) questions() (all [][]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.asked {
		if len(q.Columns) > 3 {
			all = append(all, q.Jobs)
		}
	}
	return all
}
