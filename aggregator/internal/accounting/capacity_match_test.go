package accounting

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/logtest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// TestCapacityFollowsWhatSourcesTellAndWhatIsConfigured has the frame of a source as
// agents hand it over.
func TestCapacityFollowsWhatSourcesTellAndWhatIsConfigured(t *testing.T) {
	s := newSite(t)
	k, err := NewKeeper(s, slog.New(slog.NewTextHandler(&logtest.Log{}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	k.every = 10 * time.Millisecond
	go func() { done <- k.Run(ctx) }()
	frame := wire.Frame{Kind: wire.KindCapacity, SourceType: "slurm", SourceLabel: "nemo", Capacity: wire.Capacity{From: 5, Components: []record.Component{{Name: "Cores", Amount: 64}}}}
	c := &store.IngestCommand{Agent: "a", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 1, Now: 1, Facts: []store.Fact{
		{Kind: store.FactCapacity, Source: record.Origin{Agent: "a", Type: "slurm", Label: "nemo"}, At: 5, Data: wire.AppendFrame(nil, &frame)},
	}}
	if _, err := s.Apply(1, 1, store.Encode(c)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !k.Capacity().At("nemo", "Cores", 6).Known; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nemo is no cluster")
		}
	}
	if key, is := k.Derivation().Key(ClusterKey); !is || key.From[0] != "site_id" {
		t.Error(k.Derivation().Keys)
	}
	plan := CapacityPlan{Clusters: []Cluster{{Name: "big", Match: []NodeMatch{{Key: "site_id", Values: []string{"nemo"}}}}}}
	if err := k.Set(Settings{Capacity: plan}); err != nil {
		t.Fatal(err)
	}
	if got := k.Capacity().At("big", "Cores", 6); got.Amount.String() != "64" || k.Capacity().At("nemo", "Cores", 6).Known {
		t.Error("a cluster of the configuration does not have what its source tells:", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
