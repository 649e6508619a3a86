package main

import (
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

// changedFiles returns the files that commits of the last three days changed.
func changedFiles(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "git", "log", "--since=3.days", "--name-only", "--format=").Output()
	if err != nil {
		return nil, fmt.Errorf("list what changed in the last three days: git log: %w", err)
	}
	files := strings.Fields(string(out))
	slices.Sort(files)
	return slices.Compact(files), nil
}

// concurrent are the packages with many goroutines: the race detector looks at them always.
var concurrent = []string{
	"agent/internal/buffer", "agent/internal/collect", "agent/internal/run", "agent/internal/serve",
	"aggregator/internal/action", "aggregator/internal/api", "aggregator/internal/cluster", "aggregator/internal/daemon",
	"aggregator/internal/ingest", "aggregator/internal/membership", "aggregator/internal/store", "aggregator/internal/usage",
	"plugins/host", "plugins/sdk",
}

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// racePackages returns the packages that the race detector looks at: those of changed
// files, what imports them directly, and the concurrent ones.
func racePackages(ctx context.Context, changed []string) ([]string, error) {
	packages, err := listPackages(ctx)
	if err != nil {
		return nil, err
	}
	return choosePackages(packages, changed), nil
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

func choosePackages(packages []goPackage, changed []string) []string {
	known := map[string]bool{}
	for _, p := range packages {
		known[p.ImportPath] = true
	}
	touched := map[string]bool{}
	for _, file := range changed {
		touched[packageOf(file, known)] = true
	}
	var chosen []string
	for _, p := range packages {
		imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		if touched[p.ImportPath] || slices.Contains(concurrent, relativePackage(p.ImportPath)) ||
			slices.ContainsFunc(imports, func(i string) bool { return touched[i] }) {
			chosen = append(chosen, "./"+relativePackage(p.ImportPath))
		}
	}
	return chosen
}

// packageOf returns the package in whose folder, or below it, a file is.
func packageOf(file string, known map[string]bool) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if name := path.Join(module, dir); known[name] || dir == "." {
			return name
		}
	}
}
