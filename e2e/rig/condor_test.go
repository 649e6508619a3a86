//go:build e2e

package rig_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

func TestCondor_JobsEnded_AreInTheHistoryOfTheirSchedd(t *testing.T) {
	t.Parallel()
	p := rig.Condor(t)
	for _, schedd := range []string{rig.FirstSchedd, rig.SecondSchedd} {
		id := p.Submit(schedd, rig.Alice, "executable = /bin/sleep", "arguments = 1")
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			text, err := os.ReadFile(p.History(schedd))
			if err == nil && strings.Contains(string(text), `GlobalJobId = "`+schedd+"#"+id+".0#") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no ad of job %s of %s: %v\n%s", id, schedd, err, text)
			}
		}
	}
}
