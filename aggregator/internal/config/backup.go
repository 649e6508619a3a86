package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// Backup is the block backup { … }: this node makes archives of the cluster's
// state by itself.
type Backup struct {
	// Path is the directory that they are put into. It is not made: one that is
	// missing may be a disk that is not mounted.
	Path hcl.Path `hcl:"path"`
	// Every is how often one is made; 24h when it is not written.
	Every hcl.Duration `hcl:"every,optional"`
	// Keep is how many of them are kept; 7 when it is not written.
	Keep int `hcl:"keep,optional"`
	// KeepAt is where it is written.
	KeepAt hcl.Range `hcl:"keep,attr_range"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

const (
	everyDefault = 24 * time.Hour
	minEvery     = time.Minute
	keepDefault  = 7
	maxKeep      = 10_000
)

// Interval is how often a backup is made.
func (b *Backup) Interval() time.Duration {
	if b.Every.Range == (hcl.Range{}) {
		return everyDefault
	}
	return b.Every.Duration
}

// Kept is how many backups are kept.
func (b *Backup) Kept() int {
	if b.KeepAt == (hcl.Range{}) {
		return keepDefault
	}
	return b.Keep
}

// validate reports what is wrong with the block; data is the data directory.
func (b *Backup) validate(data hcl.Path) hcl.Diagnostics {
	if b == nil {
		return nil
	}
	var diags hcl.Diagnostics
	if b.Path.Range != (hcl.Range{}) && b.Path.Path == "" {
		diags.Add(hcl.Errorf(b.Path.Range, `invalid value for "path"`, "it is empty; expected a directory such as /var/backups/bursar"))
	}
	if every := b.Interval(); every < minEvery {
		diags.Add(hcl.Errorf(b.Every.Range, `invalid value for "every"`, "%s is less than %s; a backup reads all of the state", every, minEvery))
	}
	if keep := b.Kept(); keep < 1 || keep > maxKeep {
		diags.Add(hcl.Errorf(b.KeepAt, `invalid value for "keep"`, "%d is not between 1 and %d", keep, maxKeep))
	}
	if data.Path != "" && b.Path.Path != "" && within(data.Path, b.Path.Path) {
		diags.Add(hcl.Errorf(b.Path.Range, "backups beside the data", "%s is in the data_dir, with which it would be lost; put them on another disk, or at least into another directory", b.Path.Path))
	}
	return diags
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// check warns of a directory into which this machine cannot put backups. It may
// come later, so it does not keep the node from serving.
func (b *Backup) check() hcl.Diagnostics {
	if b == nil {
		return nil
	}
	info, err := os.Stat(b.Path.Path)
	switch {
	case err != nil:
		err = fmt.Errorf("%w; mount it, or make it: install -d -o bursar -g bursar -m 0750 %s", err, b.Path.Path)
	case !info.IsDir():
		err = fmt.Errorf("%s is not a directory", b.Path.Path)
	default:
		return nil
	}
	return hcl.Diagnostics{hcl.Warnf(b.Path.Range, "no backups can be made", "%v", err)}
}
