package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// changedFiles returns the files that commits of the last three days changed, the newest
// change first.
func changedFiles(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "git", "log", "--since=3.days", "--name-only", "--format=").Output()
	if err != nil {
		return nil, fmt.Errorf("list what changed in the last three days: git log: %w", err)
	}
	var files []string
	seen := map[string]bool{}
	for file := range strings.FieldsSeq(string(out)) {
		if !seen[file] {
			seen[file], files = true, append(files, file)
		}
	}
	return files, nil
}

// concurrent are the packages with many goroutines: the race detector looks at them always.
var concurrent = []string{
	"agent/internal/buffer", "agent/internal/collect", "agent/internal/run", "agent/internal/serve",
	"aggregator/internal/action", "aggregator/internal/api", "aggregator/internal/cluster", "aggregator/internal/daemon",
	"aggregator/internal/ingest", "aggregator/internal/membership", "aggregator/internal/store", "aggregator/internal/sums",
	"plugins/host", "plugins/sdk",
}

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// raceParts returns the packages that the race detector looks at in the check, a few at a
// time: the concurrent ones, and those of changed files and what imports them directly, both
// in the order of changed.
func raceParts(ctx context.Context, changed []string) ([]testPart, error) {
	packages, err := listPackages(ctx)
	if err != nil {
		return nil, err
	}
	always, others := choosePackages(packages, changed)
	var parts []testPart
	for _, few := range slices.Concat(slices.Collect(slices.Chunk(always, 4)), slices.Collect(slices.Chunk(others, 8))) {
		parts = append(parts, testPart{names: few, packages: few})
	}
	return parts, nil
}

func listPackages(ctx context.Context) ([]goPackage, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: go list: %w", err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// choosePackages returns the concurrent packages, and the others that are touched by
// changed files: both in their order, and after those what only imports them.
func choosePackages(packages []goPackage, changed []string) (always, others []string) {
	known := map[string]bool{}
	for _, p := range packages {
		known[p.ImportPath] = true
	}
	touched := map[string]int{} // by package: the place of its first file in changed
	for i, file := range changed {
		if name := packageOf(file, known); !hasKey(touched, name) {
			touched[name] = i
		}
	}
	places := map[string]int{}
	for _, p := range packages {
		name := "./" + relativePackage(p.ImportPath)
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		if i, ok := touched[p.ImportPath]; ok {
			places[name] = i
		} else {
			for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
				if i, ok := touched[imported]; ok && (!hasKey(places, name) || len(changed)+i < places[name]) {
					places[name] = len(changed) + i
				}
			}
		}
		if slices.Contains(concurrent, name[2:]) {
			always = append(always, name)
		} else if hasKey(places, name) {
			others = append(others, name)
		}
		if !hasKey(places, name) {
			places[name] = 2 * len(changed)
		}
	}
	for _, list := range [][]string{always, others} {
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(places[a], places[b]), strings.Compare(a, b)) })
	}
	return always, others
}

func hasKey(m map[string]int, key string) bool { _, ok := m[key]; return ok }

// packageOf returns the package in whose folder, or below it, a file is.
func packageOf(file string, known map[string]bool) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if name := path.Join(module, dir); known[name] || dir == "." {
			return name
		}
	}
}
