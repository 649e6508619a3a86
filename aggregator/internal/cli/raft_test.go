package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// group is a shell at a cluster whose members are changed.
func group(t *testing.T, m *apitest.Members) (shell, *apitest.World) {
	t.Helper()
	s, w := filled(t)
	w.Options.Members, w.Options.Snapshots = m, noSnapshots{}
	return s, w
}

// noSnapshots saves and restores none.
type noSnapshots struct{ api.Snapshots }

// trioMembers are members of whom not all is known.
func trioMembers() *apitest.Members {
	return &apitest.Members{List: []api.Member{
		{ID: "n1", Name: "agg1", Address: "agg1:8701", Dialled: "agg1:8701", Version: "1.2.3", Voter: true, Leader: true, Applied: 42, Match: 42},
		{ID: "n2", Address: "agg2:8701", Dialled: "agg2:8701", Match: 7, LastContact: apitest.Noon().Add(-500 * time.Millisecond)},
		{ID: "n3", Name: "agg3", Address: "old3:8701", Dialled: "agg3:8701", Version: "1.2.3", Voter: true, Applied: 41},
		{ID: "a/b", Address: "agg4:8701", Dialled: "agg4:8701"},
	}}
}

func TestAChangeOfTheClusterIsAskedForOnceAndItsOutcomeSaid(t *testing.T) {
	for line, want := range map[string]string{
		"add n4 agg4:8701": `POST /v1/cluster/members {"id":"n4","address":"agg4:8701"}`,
		"remove n2":        `DELETE /v1/cluster/members/n2`,
		"remove a/b":       `DELETE /v1/cluster/members/a%2Fb`,
		"transfer-leader":  `POST /v1/cluster/leader:transfer`,
	} {
		s, w := group(t, trioMembers())
		code, out, errs := s.bursar(t.Context(), append([]string{"operator", "raft"}, strings.Fields(line)...)...)
		if code != 0 || out != "" || errs == "" || !slices.Equal(w.Asked(), []string{want}) {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
}

func TestAChangeOfTheClusterThatIsRefusedSaysWhy(t *testing.T) {
	for _, line := range []string{"add n4 agg4:8701", "remove n2", "transfer-leader"} {
		m := trioMembers()
		m.Err = fmt.Errorf("%w: no quorum would be \x1b[31mleft", api.ErrRefused)
		s, w := group(t, m)
		code, out, errs := s.bursar(t.Context(), append([]string{"operator", "raft"}, strings.Fields(line)...)...)
		if code != 1 || out != "" || !strings.Contains(errs, "no quorum would be ") || strings.Contains(errs, "\x1b") || len(w.Asked()) != 1 {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
}

func TestAChangeOfTheClusterThatIsNotWholeIsNotAskedFor(t *testing.T) {
	s, w := group(t, trioMembers())
	for _, line := range []string{"add n4", "add", "remove", "remove n4 n5", "transfer-leader n4"} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"operator", "raft"}, strings.Fields(line)...)...); code != 1 || errs == "" || len(w.Asked()) > 0 {
			t.Errorf("%s: %d %q", line, code, errs)
		}
	}
}

func TestTheMembersAreListedInEveryFormat(t *testing.T) {
	s, _ := group(t, trioMembers())
	for _, format := range []string{"table", "json", "csv"} {
		code, out, errs := s.bursar(t.Context(), "operator", "raft", "list-peers", "-format", format)
		if code != 0 {
			t.Error(code, errs)
		}
		golden(t, "list-peers."+format, out)
		if note := "agg3: the queried node dials it at agg3:8701"; strings.Contains(errs, note) != (format == "table") {
			t.Errorf("%s: %q", format, errs)
		}
	}
}

// stopped makes the data folder of a node that is the whole of its cluster, and
// stops it.
func stopped(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	id, err := cluster.Identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := cluster.Open(cluster.Config{DataDir: dir, State: s, Images: s, Bootstrap: []cluster.Server{{ID: id, Addr: "agg1:8701"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAStoppedNodeIsInspectedAndRecoveredOnlyWithAYes(t *testing.T) {
	dir := stopped(t)
	code, out, errs := (shell{}).bursar(t.Context(), "operator", "raft", "inspect", dir)
	if code != 0 || !strings.Contains(out, "furthest") {
		t.Error(code, out, errs)
	}
	before, err := cluster.Identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"operator", "recover", "-data-dir", dir, "-raft-address", "agg1:8702"}
	if code, _, errs := (shell{stdin: "no\n"}).bursar(t.Context(), args...); code != 1 || !strings.Contains(errs, "nothing was done") {
		t.Error(code, errs)
	}
	if id, err := cluster.Identity(dir); err != nil || id != before {
		t.Error("the node is another one without a yes:", id, err)
	}
	if code, _, errs := (shell{}).bursar(t.Context(), append(args, "-yes")...); code != 0 || !strings.Contains(errs, "is the whole cluster") {
		t.Error(code, errs)
	}
	if id, err := cluster.Identity(dir); err != nil || id == before {
		t.Error("the node has kept its id:", id, err)
	}
}

func TestWhatRootDoesInANodesFolderStaysReadableForTheDaemon(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	dir := stopped(t)
	own := func(uid int) (others []string) {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if uid >= 0 {
				return os.Lchown(path, uid, uid)
			}
			info, err := os.Lstat(path)
			if st, ok := info.Sys().(*syscall.Stat_t); err != nil || !ok || st.Uid != nobody {
				others = append(others, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return others
	}
	own(nobody)
	for _, line := range []string{"operator check -data-dir " + dir, "operator recover -yes -raft-address agg1:8702 -data-dir " + dir} {
		if code, _, errs := (shell{}).bursar(t.Context(), strings.Fields(line)...); code != 0 {
			t.Error(line, errs)
		}
		if others := own(-1); len(others) > 0 {
			t.Errorf("after %s, root owns %q", line, others)
		}
	}
}
