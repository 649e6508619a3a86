//go:build e2e

package rig_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

func TestGridEngine_JobEnded_IsInAccountingFile(t *testing.T) {
	t.Parallel()
	g := rig.GridEngine(t)
	id := g.Submit(rig.Alice, "exit 3", "-N", "three", "-P", "astro")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(g.Accounting())
		if err == nil && strings.Contains(string(text), ":alice:alice:three:"+id+":") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no line of job %s: %v\n%s", id, err, text)
		}
	}
}
