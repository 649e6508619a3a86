package run_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/control"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func TestAClusterIsForgottenByOrderAndByOrderOnly(t *testing.T) {
	s := newSite(t)
	block, keys := s.tls()
	s.write("one", "1 eve 100 200\n")
	s.configure(block, s.sources(source("one", "")))
	s.start()
	s.until("example/one", sent(1))
	client := s.dial(keys)
	pull(t, client)
	first, err := client.Pull(t.Context(), &bursarv1.PullRequest{Cluster: "wiped"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resume(t.Context(), &bursarv1.ResumeRequest{Cluster: "wiped", Epoch: first.GetEpoch()}); err != nil {
		t.Fatal(err)
	}
	clusters := s.agent.Status().Buffer.Clusters
	if len(clusters) != 2 || clusters[1].ID != "wiped" || clusters[1].Through != 0 || clusters[1].Behind == 0 || clusters[1].Away {
		t.Fatalf("%+v", clusters)
	}
	operator := control.NewClient(s.load().SocketPath())
	defer operator.Close()
	if _, err := operator.Forget(t.Context(), control.Forget{Cluster: "wipd"}); err == nil || !strings.Contains(err.Error(), `no cluster "wipd"; known are c, wiped`) {
		t.Errorf("error %v", err)
	}
	got, err := operator.Forget(t.Context(), control.Forget{Cluster: "wiped"})
	if err != nil || got.Cluster.Behind < clusters[1].Behind || got.Dropped != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if clusters = s.agent.Status().Buffer.Clusters; len(clusters) != 1 || clusters[0].ID != "c" {
		t.Errorf("%+v", clusters)
	}
	if !strings.Contains(s.log.String(), "forgot a cluster, by order") {
		t.Error(s.log.String())
	}
}
