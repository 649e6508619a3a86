package source

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/fakenomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	server := fakenomad.New()
	t.Cleanup(server.Close)
	server.Register(nomad.Job{ID: "j", Name: "j", Namespace: "default", Meta: map[string]string{"owner": "alice"}})
	begin := time.Now().Add(-time.Hour).UTC()
	for i := range 30 {
		start := begin.Add(time.Duration(i) * time.Minute)
		stop := start.Add(time.Minute)
		server.Put(nomad.Allocation{
			ID: fmt.Sprintf("a%d", i), Namespace: "default", JobID: "j", TaskGroup: "g", ClientStatus: nomad.Complete,
			CreateTime: start.UnixNano(), ModifyTime: stop.UnixNano(),
			TaskStates: map[string]*nomad.TaskState{"main": {State: "dead", StartedAt: start, FinishedAt: stop}},
		})
	}
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source {
			s := New(slog.New(slog.DiscardHandler))
			s.oneLook = true // it would have no end
			return s
		},
		Quiet:  time.Minute,
		Config: plugintest.Block("config", plugintest.Attr("address", server.URL), plugintest.Attr("per_page", 7)),
	})
}
