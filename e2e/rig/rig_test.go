//go:build e2e

package rig_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

func TestSlurmAccountsAJobThatRan(t *testing.T) {
	for _, v := range rig.Variants() {
		t.Run(v.String(), func(t *testing.T) {
			c := rig.Slurm(t, v)
			id := c.Submit(rig.Alice, "-n2", "--wrap", "exit 7")
			c.WaitState(id, "FAILED")
			cmd := exec.Command(c.SacctPath(), "-n", "-X", "-P", "-j", id, "-o", "User,Account,NCPUS,ExitCode")
			cmd.Env = []string{"PATH=/usr/bin:/usr/sbin"}
			out, err := cmd.CombinedOutput()
			if got, want := strings.TrimSpace(string(out)), "alice|physics|2|7:0"; err != nil || got != want {
				t.Errorf("sacct by its wrapper: %q, %v; want %q", got, err, want)
			}
			if got := c.Sacct("-V"); !strings.Contains(got, v.String()) {
				t.Errorf("sacct -V: %q, want %s", got, v)
			}
		})
	}
}
