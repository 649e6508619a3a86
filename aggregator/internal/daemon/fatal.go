package daemon

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

// exitDisk is the exit code of a node whose disk does not take what is written
// (EX_IOERR of sysexits.h). The unit starts it again.
const exitDisk = 74

// exitProcess ends the process, where it cannot end in order.
func (a *Aggregator) exitProcess(code int) {
	if a.set.Exit != nil {
		a.set.Exit(code)
		return
	}
	os.Exit(code)
}

// exitOnStoreError ends the process when the store cannot go on: all that was confirmed is
// on disk or with the other nodes.
func (a *Aggregator) exitOnStoreError(err error) {
	switch {
	case errors.Is(err, store.ErrCorrupt):
		a.set.Log.Error("the store is damaged: this node ends", "error", addRemedy(a.set.DataDir, err))
		a.exitProcess(systemd.ExitFenced)
	case strings.Contains(err.Error(), syscall.ENOSPC.Error()), strings.Contains(err.Error(), syscall.EDQUOT.Error()):
		a.set.Log.Error("the disk is full: this node stops; free space, then start it again: "+a.set.DataDir, "error", err, "do", "bursar operator disk free-ballast")
		a.exitProcess(exitDisk)
	default:
		a.set.Log.Error("the store cannot be written: this node ends", "error", err)
		a.exitProcess(exitDisk)
	}
}

// addRemedy adds to an error that says that data on disk are damaged what to do.
func addRemedy(dir string, err error) error {
	if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, cluster.ErrCorrupt) {
		return err
	}
	return fmt.Errorf(`%w
Nothing of what is in %[2]s may be used.
One of several nodes: stop it, move %[2]s away (keep it: it shows what went wrong), and start it. It joins as a new node and gets its state from the others.
A node alone: move %[2]s away and begin with the newest snapshot (bursar aggregator -bootstrap-from FILE), or with nothing; agents hand over what they have retained.
If this happens again, look for a bad disk or bad memory in this machine`, err, dir)
}
