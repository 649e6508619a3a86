package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
)

// ErrNotFound says that no folder has the plugin's binary.
var ErrNotFound = errors.New("plugin not found")

var typeName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Find returns the path of bursar-<kind>-<typ> in the first of dirs that has it.
// Kind is "source" or "action". The error is ErrNotFound when none has it; it
// names the folders and the plugins that are there.
func Find(dirs []string, kind, typ string) (string, error) {
	if !typeName.MatchString(typ) {
		return "", fmt.Errorf("%q is not the name of a plugin type: only a-z, 0-9, - and _ are allowed", clipText(typ))
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, programPrefix(kind)+typ)
		_, err := os.Lstat(path)
		switch {
		case err == nil:
			return filepath.Abs(path)
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("look for the plugin %q: %w", typ, err)
		}
	}
	return "", fmt.Errorf("%w: no %s%s in %s; %s", ErrNotFound, programPrefix(kind), typ, strings.Join(dirs, ", "), offerTypes(typ, List(dirs, kind)))
}

// List returns the types of the plugins of a kind that the folders have, sorted.
func List(dirs []string, kind string) []string {
	var types []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // an absent folder has no plugins
		}
		for _, e := range entries {
			if typ, ok := strings.CutPrefix(e.Name(), programPrefix(kind)); ok && typeName.MatchString(typ) {
				types = append(types, typ)
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func programPrefix(kind string) string { return "bursar-" + kind + "-" }

func offerTypes(typ string, types []string) string {
	if len(types) == 0 {
		return "there are no plugins at all"
	}
	return hcl.DidYouMean(typ, types)
}
