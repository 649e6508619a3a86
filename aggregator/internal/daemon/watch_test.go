package daemon_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// closely makes a site whose nodes compare their states all the time.
func closely(s *site) {
	s.tune = func(set *daemon.Settings) {
		set.Watch = daemon.WatchSettings{Compare: 300 * time.Millisecond, Look: 100 * time.Millisecond}
		set.Files = agentFile(set.Name)
	}
}

// agentFile are the files of a node that pulls from an agent.
func agentFile(agent string) *clusterconfig.Document {
	return &clusterconfig.Document{Settings: []byte(`{"agent":[{"address":"` + agent + `:7070","name":"` + agent + `"}]}`)}
}

// configAnswer is what GET /v1/config answers.
type configAnswer struct {
	Digest      string
	CommittedBy string `json:"committed_by"`
	Document    json.RawMessage
	Nodes       []struct {
		Node    string
		Differs bool
	}
}

// config waits until a node says which configuration is active, and that
// as many nodes as wanted have said what is in their files.
func (s *site) config(name string, nodes int) (got configAnswer) {
	s.t.Helper()
	s.until("configuration of "+name, func() error {
		status, _, answer, err := s.request(name, "GET", "/v1/config", "")
		if err != nil || status != 200 {
			return fmt.Errorf("%d %s %w", status, answer, err)
		}
		got = configAnswer{}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			return err
		}
		if got.Digest == "" || len(got.Nodes) < nodes {
			return errors.New(answer)
		}
		return nil
	})
	return got
}

func TestAllNodesObeyOneConfigurationThoughTheirFilesDiffer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	closely(s)
	s.start("agg1", "agg2", "agg3")
	first := s.config("agg1", 3)
	for _, name := range []string{"agg2", "agg3"} {
		if got := s.config(name, 3); got.Digest != first.Digest || got.CommittedBy != first.CommittedBy {
			t.Errorf("%s obeys %+v, and agg1 %+v", name, got, first)
		}
	}
	s.until("each node is known to differ or not", func() error {
		for _, n := range s.config("agg1", 3).Nodes {
			if n.Differs == (n.Node == first.CommittedBy) {
				return fmt.Errorf("%s committed, and %s: differs %v", first.CommittedBy, n.Node, n.Differs)
			}
		}
		return nil
	})
	s.until("the cluster's version is raised by itself", func() error {
		_, _, answer, err := s.request("agg2", "GET", "/v1/status", "")
		if err == nil && !strings.Contains(answer, fmt.Sprintf(`"cluster_version":%d`, store.CommandFormat)) {
			err = errors.New(answer)
		}
		return err
	})

	body := string(agentFile("said").Encode())
	if status, _, answer, err := s.request("agg2", "PUT", "/v1/config?replaces=00", body); err != nil || status != 409 {
		t.Error("a configuration was replaced unseen:", status, answer, err)
	}
	if status, _, answer, err := s.request("agg2", "PUT", "/v1/config?replaces="+first.Digest, `{"format":3,"settings":{"agnt":[]}}`); err != nil || status != 400 {
		t.Error("a configuration was committed that nobody understands:", status, answer, err)
	}
	if status, _, answer, err := s.request("agg2", "PUT", "/v1/config?replaces="+first.Digest, body); err != nil || status != 200 {
		t.Error(status, answer, err)
	}
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		if got := s.config(name, 3); string(got.Document) != body {
			t.Errorf("%s obeys %s", name, got.Document)
		}
	}
}

// falsify gives a node that does not run another state at the same entry of the
// log, as a mistake in the program would. It is sound in itself.
func falsify(t *testing.T, data string) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: filepath.Join(data, "store")})
	if err != nil {
		t.Fatal(err)
	}
	index, term := s.Applied()
	image := filepath.Join(t.TempDir(), "image")
	if err := s.Checkpoint(image); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ChangeImage(image, &store.DocumentCommand{Sets: []store.Document{{Space: "config", Key: "other", Value: []byte("x")}}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.RestoreAt(image, index, term), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// rot changes a value of the store of a node that does not run, as a damaged disk
// or a curious administrator would.
func rot(t *testing.T, data string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(data, "store", "db-*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	db, err := pebble.Open(names[0], &pebble.Options{FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	key := append(binary.BigEndian.AppendUint32([]byte{'v'}, uint32(len("config"))), "configcluster"...)
	value, closer, err := db.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	wrong := append(slices.Clone(value), 'x')
	closer.Close()
	if err := errors.Join(db.Set(key, wrong, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestANodeWhoseStateWasChangedBehindItsBackIsFencedUntilItIsEmptied(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	closely(s)
	s.start("agg1", "agg2", "agg3")
	s.post("agg1", "before")
	s.has("agg2", 1)
	before := s.config("agg2", 3)
	s.stop("agg2")
	falsify(t, s.data("agg2"))
	s.start("agg2")
	s.until("the configuration is changed", func() error {
		status, _, answer, err := s.request("agg1", "PUT", "/v1/config?replaces="+before.Digest, string(agentFile("changed").Encode()))
		if err == nil && status != 200 && status != 409 {
			err = fmt.Errorf("%d %s", status, answer)
		}
		return err
	})
	select {
	case err := <-s.nodes["agg2"].done:
		if !errors.Is(err, membership.ErrFenced) {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("a node with a wrong state goes on")
	}
	delete(s.nodes, "agg2")
	_, err := daemon.Open(daemon.Settings{Name: "agg2", DataDir: s.data("agg2"), Log: slog.New(s.log)})
	if !errors.Is(err, membership.ErrFenced) || !strings.Contains(err.Error(), "move "+s.data("agg2")+" away") {
		t.Fatal(err)
	}
	s.post("agg3", "meanwhile")
	if err := os.Rename(s.data("agg2"), s.data("agg2")+".fenced"); err != nil {
		t.Fatal(err)
	}
	s.start("agg2")
	s.has("agg2", 2)
}

func TestANodeWhoseDataAreNotAllThereDoesNotServeAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	s.start("agg1", "agg2", "agg3")
	s.post("agg1", "before")
	s.has("agg2", 1)
	s.config("agg2", 3)
	s.stop("agg2")
	rot(t, s.data("agg2"))
	_, err := daemon.Open(daemon.Settings{Name: "agg2", DataDir: s.data("agg2"), Log: slog.New(s.log)})
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "move "+s.data("agg2")+" away") {
		t.Fatal(err)
	}
	s.post("agg3", "meanwhile")
	if err := os.Rename(s.data("agg2"), s.data("agg2")+".damaged"); err != nil {
		t.Fatal(err)
	}
	s.start("agg2")
	s.has("agg2", 2)
}

func TestAProgramThatIsTooOldForItsDataDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	_, stop := start(t, dir)
	stop()
	s, err := store.Open(store.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	index, term := s.Applied()
	if _, err := s.Apply(index+1, term, store.Encode(&store.SetVersionCommand{Version: store.CommandFormat + 1})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = daemon.Open(daemon.Settings{Name: "agg1", DataDir: dir, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, membership.ErrProgramTooOld) {
		t.Error(err)
	}
}
