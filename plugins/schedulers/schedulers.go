// Package schedulers says which schedulers a machine has.
package schedulers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Scheduler is a scheduler of this machine.
type Scheduler struct {
	Type  string // of its source
	Label string // the name of its cluster
	How   string // how it was found, in words
	// Config is what the block config of its source needs, in HCL; "": nothing.
	Config string
}

// Look returns the schedulers that answer, or whose files are there.
func Look(ctx context.Context) (list []Scheduler) {
	if Slurm(ctx) {
		found := Scheduler{Type: "slurm", Label: slurmCluster(ctx), How: "Slurm, by sacct on this machine"}
		if path, err := exec.LookPath("sacct"); err == nil && path != usualSacct {
			found.Config = fmt.Sprintf("sacct = %q", path)
		}
		list = append(list, found)
	}
	if path := first("/var/lib/gridengine/*/common/accounting", "/opt/sge/*/common/accounting", "/opt/gridengine/*/common/accounting", "/opt/uge/*/common/accounting", "/opt/age/*/common/accounting"); path != "" {
		list = append(list, Scheduler{Type: "gridengine", Label: "gridengine", How: "Grid Engine, by " + path})
	}
	if path := first("/var/lib/condor/spool/history"); path != "" {
		list = append(list, Scheduler{Type: "htcondor", Label: "htcondor", How: "HTCondor, by " + path})
	}
	if address := cmp.Or(os.Getenv("NOMAD_ADDR"), usualNomad); nomad(ctx, address) {
		found := Scheduler{Type: "nomad", Label: "nomad", How: "Nomad, at " + address}
		if address != usualNomad {
			found.Config = fmt.Sprintf("address = %q", address)
		}
		list = append(list, found)
	}
	return list
}

// usualNomad is where the source asks by itself.
const usualNomad = "http://127.0.0.1:4646"

// nomad reports whether a Nomad answers who leads it, which needs no token.
func nomad(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/v1/status/leader", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var leader string // host:port
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<10)).Decode(&leader)
	return err == nil && resp.StatusCode == http.StatusOK && leader != ""
}

// usualSacct is where the source looks for sacct by itself.
const usualSacct = "/usr/bin/sacct"

// first is the first file of the patterns that is there; "" when none is.
func first(patterns ...string) string {
	for _, p := range patterns {
		if list, err := filepath.Glob(p); err == nil && len(list) > 0 {
			return list[0]
		}
	}
	return ""
}

// patience is how long a scheduler may take to answer.
const patience = 5 * time.Second

// Slurm reports whether sacct is there and answers.
func Slurm(ctx context.Context) bool {
	_, err := run(ctx, "sacct", "-n", "-X", "-S", "now-1minutes", "-o", "jobid")
	return err == nil
}

// slurmCluster is the name of Slurm's cluster, "slurm" when it is not told.
func slurmCluster(ctx context.Context) string {
	out, _ := run(ctx, "scontrol", "show", "config") // without it the label is the usual one
	if m := regexp.MustCompile(`(?m)^ClusterName\s*=\s*([A-Za-z0-9._-]{1,128})\s*$`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return "slurm"
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// Installed reports whether a plugin, such as source-slurm, is in one of the folders.
func Installed(plugins []string, plugin string) bool {
	return slices.ContainsFunc(plugins, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "bursar-"+plugin))
		return err == nil
	})
}
