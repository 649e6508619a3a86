package source

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/fakekube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	server := fakekube.New()
	t.Cleanup(server.Close)
	begin := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	for i := range 30 {
		start := begin.Add(time.Duration(i) * time.Minute)
		server.Put(kube.Pod{
			Metadata: kube.Meta{Namespace: "phys", Name: fmt.Sprintf("p%d", i), UID: fmt.Sprintf("uid-%d", i), CreationTimestamp: start},
			Spec:     kube.PodSpec{NodeName: "n1", Containers: []kube.Container{{Name: "main", Resources: kube.Resources{Requests: kube.Quantities{"cpu": "1500m"}}}}},
			Status: kube.PodStatus{Phase: kube.Succeeded, StartTime: &start, ContainerStatuses: []kube.ContainerStatus{{Name: "main",
				State: kube.State{Terminated: &kube.Terminated{StartedAt: start, FinishedAt: start.Add(time.Minute), Reason: "Completed"}}}}},
		})
	}
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source {
			s := New(slog.New(slog.DiscardHandler))
			s.oneLook = true // it would have no end
			return s
		},
		Quiet:  time.Minute,
		Config: plugintest.Block("config", plugintest.Attr("kubeconfig", server.Kubeconfig(t, "t")), plugintest.Attr("page_size", 7)),
	})
}
