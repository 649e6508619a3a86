package daemon

import (
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// actionPrograms runs those of an action where they are to run.
func (s *actors) actionPrograms(set *action.Setting, about *bursarv1.DescribeActionResponse) (action.Programs, error) {
	switch {
	case set.RunOn == "":
		s.mu.Lock()
		defer s.mu.Unlock()
		return action.Local{Dev: s.own.Dev}, nil
	case about.GetCommands() == "":
		return nil, fmt.Errorf("run_on = %q is of no use: the plugin runs no programs, it works where the leader is; remove it", set.RunOn)
	}
	life, err := s.agg.replica.readIncarnation()
	if err != nil {
		return nil, err
	}
	cluster, _ := s.agg.store.Cluster()
	return &action.Remote{
		Agent: set.RunOn, Cluster: cluster, Incarnation: life.ID, Action: set.Name,
		Dial: func() (*grpc.ClientConn, error) { return s.dialAgent(set.RunOn) },
	}, nil
}

// dialAgent prepares a connection of its own: it lasts as long as the program, whatever
// becomes of the pull.
func (s *actors) dialAgent(name string) (*grpc.ClientConn, error) {
	s.mu.Lock()
	at := slices.IndexFunc(s.agents, func(a ingest.Agent) bool { return a.Name == name })
	var agent ingest.Agent
	if at >= 0 {
		agent = s.agents[at]
	}
	s.mu.Unlock()
	switch {
	case at < 0:
		return nil, fmt.Errorf("the configuration of the cluster has no block agent %q", name)
	case s.agg.set.Keys == nil:
		return nil, fmt.Errorf("%s has no certificate, so it cannot talk to the agent %s; add tls { ca cert key } to its aggregator block", s.agg.set.Name, name)
	}
	return ingest.Dial(agent, s.agg.set.Keys, s.agg.arrivals)
}
