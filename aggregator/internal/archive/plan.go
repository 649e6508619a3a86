package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Plan says where a node puts archives, how often, and how many it keeps. The zero
// Plan is none.
type Plan struct {
	Dir   string
	Every time.Duration
	Keep  int
}

// None reports whether no archives are to be made.
func (p Plan) None() bool { return p.Every <= 0 }

// The name of an archive is bursar-NODE-CLUSTER-TIME.snapshot: several nodes may
// use one directory, and those of another cluster are never counted or removed.
const (
	namePrefix = "bursar-"
	nameSuffix = ".snapshot"
	nameTime   = "20060102T150405Z"
	// temporary ends the name of an archive that is not verified yet.
	temporary = ".tmp"
	// clusterPart is how much of the cluster's id is in the name.
	clusterPart = 8
)

// archiveFamily is how the names of a node's archives of one cluster begin.
func archiveFamily(node, cluster string) string {
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, cluster)
	return namePrefix + node + "-" + short[:min(len(short), clusterPart)] + "-"
}

func nameOf(node, cluster string, made time.Time) string {
	return archiveFamily(node, cluster) + made.UTC().Format(nameTime) + nameSuffix
}

// kept is an archive in the directory of a plan.
type kept struct {
	path string
	made time.Time
}

// listKept returns the archives of a family in dir, the newest first.
func listKept(dir, family string) ([]kept, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []kept
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), family)
		stamp, whole := strings.CutSuffix(rest, nameSuffix)
		if made, err := time.Parse(nameTime, stamp); ours && whole && err == nil && e.Type().IsRegular() {
			list = append(list, kept{filepath.Join(dir, e.Name()), made})
		}
	}
	slices.SortFunc(list, func(a, b kept) int { return b.made.Compare(a.made) })
	return list, nil
}

// sweepTemporary removes what a node that was killed has left in dir.
func sweepTemporary(dir, node string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), namePrefix+node+"-")
		rest, tmp := strings.CutSuffix(rest, nameSuffix+temporary)
		_, stamp, _ := strings.Cut(rest, "-")
		if _, err := time.Parse(nameTime, stamp); ours && tmp && err == nil && e.Type().IsRegular() {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// removeOlder removes all archives of a family but the newest keep. The one at path is
// never removed, whatever the clock was when the others were made.
func removeOlder(dir, family, path string, keep int) error {
	list, err := listKept(dir, family)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(k kept) bool { return k.path == path })
	var errs []error
	for i := max(keep-1, 0); i < len(list); i++ {
		errs = append(errs, os.Remove(list[i].path))
	}
	return errors.Join(errs...)
}

// remedyForFailure is what to do first about a backup that failed.
func remedyForFailure(p Plan, err error) string {
	switch {
	case errors.Is(err, ErrNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "df -h " + p.Dir
	case errors.Is(err, fs.ErrNotExist):
		return "install -d -o bursar -g bursar -m 0750 " + p.Dir
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("systemctl edit bursar   # add: [Service] ReadWritePaths=%s; then systemctl restart bursar", p.Dir)
	case errors.Is(err, fs.ErrPermission):
		return "chown bursar:bursar " + p.Dir
	case errors.Is(err, ErrState):
		return "bursar operator check -h   # the node's own state is not sound"
	}
	return "journalctl -u bursar -n 50"
}
