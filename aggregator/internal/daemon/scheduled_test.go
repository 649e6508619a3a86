package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// backupOf is what /v1/status says of the backups of a node.
type backupOf struct {
	Last     *string
	Bytes    int64
	Error    string
	Failures int
}

func (s *site) backups(asked, of string) (*backupOf, string) {
	_, _, body, err := s.request(asked, "GET", "/v1/status", "")
	if err != nil {
		return nil, err.Error()
	}
	var answer struct {
		Nodes []struct {
			Name   string
			Backup *backupOf
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return nil, err.Error()
	}
	for _, n := range answer.Nodes {
		if n.Name == of {
			return n.Backup, body
		}
	}
	return nil, body
}

func TestEachNodeMakesItsOwnBackupsAndAnyOfThemBeginsTheClusterAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	dir := t.TempDir()
	s.tune = func(set *daemon.Settings) { set.Backup = archive.Plan{Dir: dir, Every: time.Hour, Keep: 2} }
	s.start("agg1", "agg2", "agg3")
	s.post("agg1", "r1")
	var files []string
	s.until("a backup of each", func() error {
		files, _ = filepath.Glob(filepath.Join(dir, "bursar-agg?-*.snapshot"))
		return want(len(files) == 3, files)
	})
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		s.until("agg2 knows the backup of "+name, func() error {
			b, body := s.backups("agg2", name)
			return want(b != nil && b.Last != nil && b.Bytes > 0 && b.Error == "", body)
		})
	}
	s.until("no finding", func() error {
		_, _, body, err := s.request("agg3", "GET", "/v1/status", "")
		return want(err == nil && !strings.Contains(body, `"id":"backup-`) && !strings.Contains(body, `"last_snapshot":null`), body)
	})
	_, _, metrics, err := s.request("agg3", "GET", "/metrics", "")
	for _, line := range []string{"bursar_backup_interval_seconds 3600", "bursar_backup_failing 0", "bursar_backup_last_success_timestamp_seconds 1.", "bursar_snapshot_last_saved_timestamp_seconds 1."} {
		if err != nil || !strings.Contains(metrics, "\n"+line) {
			t.Errorf("no %s: %v", line, err)
		}
	}
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		s.stop(name)
		if err := os.RemoveAll(s.data(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.tune = func(set *daemon.Settings) { set.BootstrapFrom = files[1] }
	s.start("agg1")
	s.until("the cluster", func() error {
		_, _, body, err := s.request("agg1", "GET", "/v1/status", "")
		return want(err == nil && strings.Contains(body, `"confirmed":true`), body)
	})
}

// want is nil when ok.
func want(ok bool, got any) error {
	if ok {
		return nil
	}
	return unexpected{got}
}

type unexpected struct{ got any }

func (u unexpected) Error() string {
	text, err := json.Marshal(u.got)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestABackupThatFailsIsInTheStatusOfEveryNodeWithWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	missing := filepath.Join(t.TempDir(), "not-mounted")
	s.tune = func(set *daemon.Settings) {
		if set.Name == "agg2" {
			set.Backup = archive.Plan{Dir: missing, Every: time.Hour, Keep: 2}
		}
	}
	s.start("agg1", "agg2", "agg3")
	s.until("the finding", func() error {
		_, _, body, err := s.request("agg1", "GET", "/v1/status", "")
		ok := strings.Contains(body, `"id":"backup-fails","about":"agg2"`) && strings.Contains(body, `"do":"install -d -o bursar -g bursar -m 0750 `+missing+`   # on agg2"`) && strings.Contains(body, `"state":"degraded"`)
		return want(err == nil && ok, body)
	})
}

// openWith opens a node with an archive; the error is why it does not begin.
func (s *site) openWith(name, archive string) error {
	s.t.Helper()
	set := daemon.Settings{Name: name, DataDir: s.data(name), MinFree: 1 << 20, Log: slog.New(s.log).With("at", name), BootstrapFrom: archive}
	var err error
	if set.Keys, err = identity.Load(s.files[name]); err != nil {
		s.t.Fatal(err)
	}
	set.Raft.Peers = s.peers
	set.Raft.Listener = porttest.Again(s.t, s.peers[name])
	a, err := daemon.Open(set)
	if err == nil {
		ctx, cancel := context.WithCancel(s.t.Context())
		cancel()
		err = a.Run(ctx)
	}
	return err
}

func TestANodeDoesNotBeginWithASnapshotWhileOthersHaveACluster(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	s.start("agg1", "agg2", "agg3")
	s.post("agg1", "r1")
	archive := filepath.Join(t.TempDir(), "a.snapshot")
	s.until("a snapshot", func() error {
		status, _, body, err := s.request("agg1", "GET", "/v1/snapshot", "")
		if err == nil && status == 200 {
			err = os.WriteFile(archive, []byte(body), 0o600)
		}
		return errors.Join(err, want(status == 200, status))
	})
	s.stop("agg3")
	if err := os.RemoveAll(s.data("agg3")); err != nil {
		t.Fatal(err)
	}
	err := s.openWith("agg3", archive)
	if !errors.Is(err, daemon.ErrFounded) {
		t.Fatal(err)
	}
	for _, part := range []string{"agg1 at ", "agg2 at ", "bursar snapshot restore " + archive, "first on each of agg1, agg2: systemctl stop bursar && mv "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("it does not say %q: %v", part, err)
		}
	}
	s.start("agg3") // it is as fresh as before
	s.has("agg3", 1)
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		s.stop(name)
	}
	if err := os.RemoveAll(s.data("agg3")); err != nil {
		t.Fatal(err)
	}
	if err := s.openWith("agg3", archive); err != nil {
		t.Errorf("nobody else runs: %v", err)
	}
}
