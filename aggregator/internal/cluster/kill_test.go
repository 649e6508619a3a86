package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const killDir = "BURSAR_CLUSTER_KILL_DIR"

func TestWhatWasConfirmedSurvivesAKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		confirmForEver(t, dir)
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestWhatWasConfirmedSurvivesAKill$")
	child.Env = append(os.Environ(), killDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	confirmed := 0
	for lines := bufio.NewScanner(out); lines.Scan(); confirmed++ {
		if confirmed == 100 {
			child.Process.Kill()
		}
	}
	child.Wait()

	state := &memory{} // the child has flushed nothing
	n := lead(t, lone(t, dir, state))
	if err := n.Linearizable(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := state.commands()
	if len(got) < confirmed || confirmed < 100 {
		t.Fatalf("%d confirmed, %d applied", confirmed, len(got))
	}
	if diff := cmp.Diff(numbered(0, len(got)), got); diff != "" {
		t.Fatal(diff)
	}
}

// confirmForEver is the child: it tells each command that is confirmed.
func confirmForEver(t *testing.T, dir string) {
	n := lead(t, lone(t, dir, &memory{}))
	for i := 0; ; i++ {
		if _, err := n.Propose(context.Background(), fmt.Appendf(nil, "c%d", i)); err != nil {
			t.Fatal(err)
		}
		fmt.Println(i)
	}
}
