package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/gauges"
)

// newDiskGuard makes the guard of the disk that dir is on, with its metrics. A least of
// zero is the default.
func newDiskGuard(dir string, least int64, metrics prometheus.Registerer, log *slog.Logger) (*health.DiskGuard, error) {
	now, err := health.MeasureDisk(dir)
	if err != nil {
		return nil, fmt.Errorf("size of the file system of %s: %w", dir, err)
	}
	guard := health.NewDiskGuard(dir, health.DiskMarksOf(now.Size, uint64(max(least, 0))), log)
	gauge := func(name, help string, value func() float64) {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_" + name, Help: help}, value))
	}
	gauge("disk_free_bytes", "Space that is free on the file system of the data directory.", func() float64 { return float64(guard.State().Free) })
	gauge("disk_size_bytes", "Space that files can take on the file system of the data directory.", func() float64 { return float64(guard.State().Size) })
	gauge("disk_min_free_bytes", "Below so much free space writes wait.", func() float64 { return float64(guard.Marks().ReadOnly) })
	gauge("disk_low_bytes", "Below so much free space nothing is pulled and the leadership is handed over.", func() float64 { return float64(guard.Marks().Low) })
	gauge("disk_level", "How full the disk is: 0 normal, 1 it fills up, 2 nothing is pulled, 3 nothing is written.", func() float64 { return float64(guard.State().Level) })
	gauge("writes_paused", "1 while writes wait for space on the disk.", func() float64 { return gauges.OneIf(guard.Check() != nil) })
	gauge("pulls_paused", "1 while this node would not pull for want of space on the disk.", func() float64 { return gauges.OneIf(guard.CheckPull() != nil) })
	return guard, nil
}

// maySpill says whether the disk has room for what queries sort in files. They give way
// before writes do.
func (a *Aggregator) maySpill() error {
	if a.replica == nil { // nothing is asked before the node is put together
		return nil
	}
	return a.replica.guard.CheckPull()
}

// answerMemory is the budget of answers, by what the process may take.
func (a *Aggregator) answerMemory() *store.Budget {
	may, group := store.ProcessMemory(os.DirFS("/"))
	store.HeedGroup(may, group)
	total := a.set.AnswerMemory
	if total == 0 {
		total = store.AnswerMemory(may)
	}
	patience := a.set.Patience
	if patience == 0 {
		patience = answerPatience
	}
	a.set.Log.Info("memory", "process_mib", may>>20, "by_control_group", group, "answers_mib", total>>20)
	return store.NewBudget(total, patience, a.registry)
}

// answerPatience is how long an answer waits for memory where nothing else is set.
const answerPatience = 25 * time.Second
