//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// The configuration of AUDITOR's Slurm epilog collector, converted, makes its records of what
// scontrol shows in the same epilogs.
func TestEpilogs_ConvertedConfiguration_MakesAuditorsRecords(t *testing.T) {
	for _, v := range rig.Variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			epilogConverted(t, v)
		})
	}
}

func epilogConverted(t *testing.T, v rig.Variant) {
	s := site.New(t)
	h := newEpilogs(t, s)
	shown := filepath.Join(h.dir, "shown")
	if err := errors.Join(os.Mkdir(shown, 0o755), os.Chmod(shown, 0o777)); err != nil { // slurmctld is another user
		t.Fatal(err)
	}
	c := rig.Slurm(t, v, rig.WithConf("EpilogSlurmctld="+h.dir+"/hook"), rig.WithPath(h.dir))
	// The number of the array is also that of a task: asked for it, scontrol shows all tasks.
	h.write("hook", fmt.Sprintf(`#!/bin/sh
exec 2>>%[1]s/said
job=$SLURM_JOB_ID
[ -z "$SLURM_ARRAY_TASK_ID" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
/usr/bin/env SLURM_CONF=%[2]s /usr/bin/scontrol show job "$job" --details >%[3]s/.$SLURM_JOB_ID
mv %[3]s/.$SLURM_JOB_ID %[3]s/$SLURM_JOB_ID
%[1]s/bursar-epilog -config %[1]s/rig.hcl
`, h.dir, c.ConfPath(), shown), 0o755)
	config := auditorExample(t, s, "epilog.yml", `"slurm"`, `"epilog"`, "part1", rig.Compute)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: convertedSource(t, s, config, fmt.Sprintf("socket = %q\nsacct = %q\ndelay = \"1s\"", h.socket("rig"), c.SacctPath()))})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	for _, args := range []string{
		"-n 2 --mem=100 --wrap=true", "-p gpu --mem-per-cpu=150 -n 2 --wrap=true", "--mem=64 --wrap=false", "--mem=80 -a 1-2 --wrap=true",
	} {
		c.Submit(rig.Alice, strings.Fields(args)...)
	}
	s.Eventually("five epilogs were called", func() (bool, string) {
		files, _ := filepath.Glob(filepath.Join(shown, "[0-9]*")) // a pattern that is right
		said, _ := os.ReadFile(filepath.Join(h.dir, "said"))
		return len(files) == 5 && h.waiting() == 0, fmt.Sprintf("%d shown, %d wait: %s", len(files), h.waiting(), said)
	})
	want := slurmOracle(t, "epilog", config, shown)
	if len(want.Records) != 5 {
		t.Fatalf("AUDITOR has %v", want)
	}
	s.Eventually("the records are AUDITOR's", func() (bool, string) {
		d := cmp.Diff(want.Records, endedAsAuditor(t, agg, "epilog"))
		return d == "", d
	})
}
