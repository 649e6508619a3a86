package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// asked is a server that keeps what it is asked for, as "METHOD path body", and
// answers all of it alike.
type asked struct {
	status int
	answer string
	got    []string
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	a.got = append(a.got, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)))
	w.Header().Set("Content-Type", "application/json")
	if a.status/100 != 2 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.answer)
}

func (a *asked) shell(t *testing.T) shell {
	t.Helper()
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
}

func TestAChangeOfTheClusterIsAskedForOnceAndItsOutcomeSaid(t *testing.T) {
	for line, want := range map[string]string{
		"add n4 agg4:8701": `POST /v1/cluster/members {"id":"n4","address":"agg4:8701"}`,
		"remove n4":        `DELETE /v1/cluster/members/n4`,
		"remove a/b":       `DELETE /v1/cluster/members/a%2Fb`,
		"transfer-leader":  `POST /v1/cluster/leader:transfer`,
	} {
		a := &asked{status: 200, answer: `{"message":"done: \u001b[31mit"}`}
		code, out, errs := a.shell(t).bursar(t.Context(), append([]string{"operator", "raft"}, strings.Fields(line)...)...)
		if code != 0 || out != "" || !strings.Contains(errs, "done: ") || strings.Contains(errs, "\x1b") || !slices.Equal(a.got, []string{want}) {
			t.Errorf("%s: %d %q %q, asked for %q", line, code, out, errs, a.got)
		}
	}
}

func TestAChangeOfTheClusterThatIsRefusedSaysWhy(t *testing.T) {
	for _, line := range []string{"add n4 agg4:8701", "remove n4", "transfer-leader"} {
		a := &asked{status: 409, answer: `{"type":"about:blank","title":"Conflict","status":409,"detail":"nothing was done: no quorum would be left"}`}
		code, out, errs := a.shell(t).bursar(t.Context(), append([]string{"operator", "raft"}, strings.Fields(line)...)...)
		if code != 1 || out != "" || !strings.Contains(errs, "no quorum would be left") || len(a.got) != 1 {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
}

func TestAChangeOfTheClusterThatIsNotWholeIsNotAskedFor(t *testing.T) {
	a := &asked{status: 200, answer: `{}`}
	s := a.shell(t)
	for _, line := range []string{"add n4", "add", "remove", "remove n4 n5", "transfer-leader n4"} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"operator", "raft"}, strings.Fields(line)...)...); code != 1 || errs == "" || len(a.got) > 0 {
			t.Errorf("%s: %d %q, asked for %q", line, code, errs, a.got)
		}
	}
}

func TestTheMembersAreListedInEveryFormat(t *testing.T) {
	a := &asked{status: 200, answer: `{"members":[` +
		`{"id":"n1","name":"agg1","address":"agg1:8701","version":"1.2.3","voter":true,"leader":true,"applied":42,"match":42,"last_contact":null},` +
		`{"id":"n2","name":"","address":"agg2:8701","version":"","voter":false,"leader":false,"applied":0,"match":7,"last_contact":"2026-03-01T11:59:59.5Z"},` +
		`{"id":"n3","name":"agg3","address":"agg3:8701","version":"1.2.3","voter":true,"leader":false,"applied":41,"match":0,"last_contact":null}]}`}
	s := a.shell(t)
	for _, format := range []string{"table", "json", "csv"} {
		code, out, errs := s.bursar(t.Context(), "operator", "raft", "list-peers", "-format", format)
		if code != 0 {
			t.Error(code, errs)
		}
		golden(t, "list-peers."+format, out)
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
