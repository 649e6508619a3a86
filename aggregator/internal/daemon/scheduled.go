package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
)

// backupPlan is what a configuration says of this node's backups.
func backupPlan(a *config.Aggregator) archive.Plan {
	if a.Backup == nil {
		return archive.Plan{}
	}
	return archive.Plan{Dir: a.Backup.Path.Path, Every: a.Backup.Every.Duration, Keep: a.Backup.Keep}
}

// makeBackupSchedule makes the schedule of this node's backups.
func (a *Aggregator) makeBackupSchedule() {
	a.backups = &archive.Schedule{
		Archiver: a.snapshots.shop, Log: a.set.Log, Room: a.roomFor,
		Cluster: func() string { id, _ := a.store.Cluster(); return id },
		Current: a.mayBackUp,
	}
	a.backups.Set(a.set.Backup)
	archive.NewMetrics(a.backups, a.registry)
}

// SetBackups makes p the plan of this node's backups.
func (a *Aggregator) SetBackups(p archive.Plan) { a.backups.Set(p) }

// mayBackUp waits until this node has all that was acknowledged. An image keeps
// old data on the disk while it is archived, so there must be room.
func (a *Aggregator) mayBackUp(ctx context.Context) error {
	if err := errors.Join(a.replica.guard.CheckPull(), a.replica.checkReadable()); err != nil {
		return err
	}
	return a.replica.waitLinearizable(ctx)
}

// roomFor is how many bytes of backups dir has room for. On the disk of the data
// nothing may come near the space at which the node stops to pull; another disk
// keeps what any file system needs.
func (a *Aggregator) roomFor(dir string) (int64, error) {
	same, err := sameDisk(dir, a.set.DataDir)
	if err != nil {
		return 0, fmt.Errorf("the directory of the backups: %w", err)
	}
	if same {
		return spareSpace(dir, a.replica.guard.Marks().Low)
	}
	now, err := health.MeasureDisk(dir)
	if err != nil {
		return 0, err
	}
	return int64(now.Free) - int64(now.Size/100), nil
}

// sameDisk reports whether two directories are on one file system.
func sameDisk(a, b string) (bool, error) {
	var devices [2]uint64
	for i, path := range []string{a, b} {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return true, nil // the careful answer
		}
		devices[i] = st.Dev
	}
	return devices[0] == devices[1], nil
}

// ownBackups is how the backups of this node are doing; nil when it makes none.
func (a *Aggregator) ownBackups() *health.LocalBackup {
	s := a.backups.Status()
	if s.Plan.None() {
		return nil
	}
	b := &health.LocalBackup{
		Path: s.Plan.Dir, Every: s.Plan.Every, Began: s.Began, Last: s.Last, Bytes: s.Bytes, Remedy: s.Remedy, Failing: s.Failing, Failures: s.Failures,
	}
	if s.Err != nil {
		b.Error = s.Err.Error()
	}
	return b
}
