package membership

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func TestTheVersionRisesToWhatAllMembersCanApply(t *testing.T) {
	says := func(versions ...uint32) (list []Member) {
		for _, v := range versions {
			list = append(list, Member{ID: "x", Commands: v})
		}
		return list
	}
	for name, c := range map[string]struct {
		own   uint32
		peers []Member
		want  uint32
	}{
		"alone":                     {3, nil, 3},
		"all new":                   {3, says(3, 3), 3},
		"one old":                   {3, says(3, 2), 2},
		"others newer":              {2, says(3, 3), 2},
		"one has not been heard":    {3, says(3, 0), 0},
		"a new node without a vote": {3, says(3, 3, 1), 1},
	} {
		g := &Gate{opt: GateOptions{Own: c.own, Peers: &others{list: c.peers}}}
		if got := g.commonVersion(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestANewerCommandWaitsUntilTheLeaderHasRaisedTheVersion(t *testing.T) {
	var agreed atomic.Uint32
	agreed.Store(1)
	o, log := &others{}, &writes{}
	o.say(Member{ID: "b", Commands: 2}, Member{ID: "c", Commands: 1})
	g := NewGate(GateOptions{Own: 2, Cluster: agreed.Load, Peers: o, Writer: log, Log: quiet(), Metrics: prometheus.NewRegistry(), Every: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- g.Lead(ctx) }()
	if err := g.Check(1); err != nil {
		t.Error(err)
	}
	if err := g.Check(2); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
	if len(log.all()) > 0 {
		t.Error("the version was raised while a member could not follow")
	}
	log.fail(errors.New("not now"))
	o.say(Member{ID: "b", Commands: 2}, Member{ID: "c", Commands: 2})
	await(t, func() bool { return len(log.all()) > 1 })
	log.fail(nil)
	if c, ok := log.all()[0].(*store.SetVersionCommand); !ok || c.Version != 2 {
		t.Errorf("%T %+v", c, c)
	}
	agreed.Store(2)
	if err := g.Check(2); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAClusterThatHasAgreedOnNothingTakesTheFirstVersion(t *testing.T) {
	g := &Gate{opt: GateOptions{Own: 1, Cluster: func() uint32 { return 0 }}}
	if err := errors.Join(g.Check(0), g.Check(1)); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatIsTooOldSaysSo(t *testing.T) {
	for _, c := range []struct {
		own, cluster uint32
		old          bool
	}{{1, 0, false}, {1, 1, false}, {2, 1, false}, {1, 2, true}} {
		err := TooOld(c.own, c.cluster)
		if errors.Is(err, ErrProgramTooOld) != c.old || c.old && !strings.Contains(err.Error(), "version 2, and this program knows them up to 1") {
			t.Error(c, err)
		}
	}
}
