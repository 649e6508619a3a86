package daemon_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/racetest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// listed waits until a node's list of members has these addresses.
func (s *site) listed(name string, want map[string]string) {
	s.t.Helper()
	s.until(name+" has the new addresses in its list of members", func() error {
		status, _, answer, err := s.request(name, "GET", "/v1/cluster/members", "")
		if err != nil || status != 200 {
			return fmt.Errorf("%d %s %w", status, answer, err)
		}
		var list v1.Members
		if err := json.Unmarshal([]byte(answer), &list); err != nil {
			return err
		}
		got := map[string]string{}
		for _, m := range list.Members {
			got[m.Name] = m.Address
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		return nil
	})
}

// settled starts three nodes, waits until each has noted the names of all, and stops them.
func settled(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "agg1", "agg2", "agg3")
	names := slices.Sorted(maps.Keys(s.peers))
	s.start(names...)
	s.post("agg1", "before")
	for _, name := range names {
		s.listed(name, s.peers)
	}
	for _, name := range names {
		s.stop(name)
	}
	return s
}

func TestPeers_AllAddressesChanged_FindEachOtherAndTheListFollows(t *testing.T) {
	racetest.SkipRaft(t)
	t.Parallel()
	for what, change := range map[string]func(t *testing.T, s *site){
		"each is new": func(t *testing.T, s *site) {
			for name := range s.peers {
				s.peers[name] = porttest.Free(t)
			}
		},
		"each has that of the next": func(_ *testing.T, s *site) {
			s.peers = map[string]string{"agg1": s.peers["agg2"], "agg2": s.peers["agg3"], "agg3": s.peers["agg1"]}
		},
		"two are exchanged": func(_ *testing.T, s *site) {
			s.peers = map[string]string{"agg1": s.peers["agg2"], "agg2": s.peers["agg1"], "agg3": s.peers["agg3"]}
		},
		"each is new, and which name has which id is not known": func(t *testing.T, s *site) {
			for name := range s.peers {
				s.peers[name] = porttest.Free(t)
				if err := os.Remove(filepath.Join(s.data(name), "peers.book")); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := settled(t)
			change(t, s)
			names := slices.Sorted(maps.Keys(s.peers))
			s.start(names...)
			s.post("agg2", "after")
			for _, name := range names {
				s.has(name, 2)
				s.listed(name, s.peers)
			}
		})
	}
}

func TestPeers_OneConfigurationIsStillTheOldOne_TheOthersGoOnAndItFollows(t *testing.T) {
	racetest.SkipRaft(t)
	t.Parallel()
	s := settled(t)
	old := maps.Clone(s.peers)
	s.peers["agg1"], s.peers["agg2"] = porttest.Free(t), porttest.Free(t)
	s.start("agg1", "agg2")
	s.startWith("agg3", old)
	s.post("agg1", "after")
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		s.has(name, 2) // agg3 reaches the leader at the address in the list of members
		s.listed(name, s.peers)
	}
	s.judges("agg1", "agg3 has other addresses", func(v verdict) bool { return v.finds("peer-address", "agg3") })
}

func TestPeers_ANodeMovedThatOneConfigurationHasAtItsOldAddress_IsReached(t *testing.T) {
	racetest.SkipRaft(t)
	t.Parallel()
	s := settled(t)
	old := maps.Clone(s.peers)
	s.peers["agg3"] = porttest.Free(t)
	s.start("agg1", "agg3")
	s.post("agg1", "after")
	s.listed("agg1", s.peers)
	s.startWith("agg2", old)
	s.has("agg2", 2)
	// The node whose configuration is right goes: the two others have to find each other.
	s.stop("agg1")
	s.post("agg2", "without agg1")
	s.has("agg3", 3)
}
