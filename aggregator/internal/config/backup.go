package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/hcl/preflight"
)

// Backup is the block backup { … }: this node makes archives of the cluster's
// state by itself.
type Backup struct {
	// Path is the directory that they are put into. It is not made: one that is
	// missing may be a disk that is not mounted.
	Path hcl.Path `hcl:"path"`
	// Every is how often one is made: it reads all of the state.
	Every hcl.Duration `hcl:"every,optional" default:"24h" min:"1m"`
	// Keep is how many of them are kept.
	Keep int `hcl:"keep,optional" default:"7" min:"1" max:"10000"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// validatePath reports what is wrong with the block; data is the data directory.
func (b *Backup) validatePath(data hcl.Path) hcl.Diagnostics {
	if b == nil {
		return nil
	}
	var diags hcl.Diagnostics
	if data.Path != "" && b.Path.Path != "" && isWithin(data.Path, b.Path.Path) {
		diags.Add(hcl.Errorf(b.Path.Range, "backups beside the data", "%s is in the data_dir, with which it would be lost; put them on another disk, or at least into another directory", b.Path.Path))
	}
	return diags
}

// isWithin reports whether path is dir or below it.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// checkFolder warns of a directory into which this machine cannot put backups. It may
// come later, so it does not keep the node from serving.
func (b *Backup) checkFolder() hcl.Diagnostics {
	if b == nil {
		return nil
	}
	info, err := os.Stat(b.Path.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("folder %[1]s does not exist; mount it, or make it: install -d -o bursar -g bursar -m 0750 %[1]s", b.Path.Path)
	case err != nil:
		err = hcl.FileError(err)
	case !info.IsDir():
		err = fmt.Errorf("%s is not a directory", b.Path.Path)
	default:
		var diags hcl.Diagnostics
		for _, d := range preflight.Folder(b.Path.Path, b.Path.Range) {
			diags.Add(hcl.Warnf(b.Path.Range, "no backups can be made", "%s", d.Detail))
		}
		return diags
	}
	return hcl.Diagnostics{hcl.Warnf(b.Path.Range, "no backups can be made", "%v", err)}
}

// isThere reports whether the directory exists.
func (b *Backup) isThere() bool {
	info, err := os.Stat(b.Path.Path)
	return err == nil && info.IsDir()
}
