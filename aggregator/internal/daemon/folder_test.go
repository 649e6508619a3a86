package daemon_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// openFolder opens a node with a data folder that may be another one's.
func (s *site) openFolder(name, dir string) error {
	s.t.Helper()
	keys, err := identity.Load(s.files[name])
	if err != nil {
		s.t.Fatal(err)
	}
	l := porttest.Again(s.t, s.peers[name])
	set := daemon.Settings{
		Access: access.Rules{}, Name: name, DataDir: dir, Keys: keys, Log: slog.New(s.log), Patience: patience,
		Raft: daemon.Raft{Peers: s.peers, Listener: l},
	}
	_, err = daemon.Open(set)
	return err
}

func TestANodeDoesNotStartWithTheDataFolderOfAnother(t *testing.T) {
	t.Parallel()
	names := []string{"agg1", "agg2", "agg3"}
	s := newSite(t, names...)
	s.start(names...)
	s.post("agg1", "before")
	// One of them is a later member than the others.
	s.stop("agg3")
	if err := os.RemoveAll(s.data("agg3")); err != nil {
		t.Fatal(err)
	}
	s.start("agg3")
	for _, name := range names {
		s.has(name, 1)
		s.until(name+" has noted whose folder it is", func() error {
			text, err := os.ReadFile(s.data(name) + "/peers.book")
			var book struct {
				Body struct {
					Node  string
					Nodes []membership.Listed
				}
			}
			if err == nil {
				err = json.Unmarshal(text, &book)
			}
			own := func(n membership.Listed) bool { return n.ID == book.Body.Node && n.Name == name }
			if err == nil && !slices.ContainsFunc(book.Body.Nodes, own) { // agg3's lists the former agg3 first
				err = errors.New("not yet")
			}
			return err
		})
	}
	for _, name := range names {
		s.stop(name)
	}
	for _, name := range names {
		for _, owner := range names {
			if name == owner {
				continue
			}
			err := s.openFolder(name, s.data(owner))
			if !errors.Is(err, membership.ErrFolder) || !strings.Contains(err.Error(), s.data(owner)+" is the data folder of "+owner+", and the name of this node is "+name) {
				t.Errorf("%s with the folder of %s: %v", name, owner, err)
			}
		}
	}
	s.start(names...) // and nothing was changed
	s.post("agg2", "after")
	for _, name := range names {
		s.has(name, 2)
	}
}

func TestANodeWithTheDataFolderOfAnotherClusterSaysSo(t *testing.T) {
	t.Parallel()
	names := []string{"agg1", "agg2", "agg3"}
	other := newSite(t, names...)
	other.start(names...)
	other.post("agg1", "theirs")
	other.has("agg2", 1)
	other.until("agg2 knows of which cluster it is", func() error {
		_, _, answer, err := other.request("agg2", "GET", "/v1/status", "")
		var status struct{ Cluster string }
		if err == nil {
			err = json.Unmarshal([]byte(answer), &status)
		}
		if err == nil && status.Cluster == "" {
			err = errors.New(answer)
		}
		return err
	})
	for _, name := range names {
		other.stop(name)
	}
	s := newSite(t, names...)
	s.start(names...)
	s.post("agg1", "ours")
	s.has("agg2", 1)
	s.stop("agg2")
	if err := errors.Join(os.RemoveAll(s.data("agg2")), os.Rename(other.data("agg2"), s.data("agg2"))); err != nil {
		t.Fatal(err)
	}
	s.start("agg2")
	for _, name := range names {
		s.until(name+" names the folder", func() error {
			_, _, answer, err := s.request(name, "GET", "/v1/status", "")
			if err == nil && !(strings.Contains(answer, `"other-cluster"`) && strings.Contains(answer, "the data folder of this node, "+s.data(name)+", is of cluster ")) {
				err = errors.New(answer)
			}
			return err
		})
	}
}
