package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// trioSite is a cluster of three nodes on this machine.
type trioSite struct {
	nodes [3]*nodeSite
}

// newTrio writes the configurations of three nodes that pull from a; nil: from
// none.
func (b *bench) newTrio(name string, a *agentSite) (*trioSite, error) {
	t := &trioSite{}
	var peers [3]string
	for i := range peers {
		if err := freePorts(&peers[i]); err != nil {
			return nil, err
		}
	}
	for i := range t.nodes {
		var err error
		if t.nodes[i], err = b.newMember(name, i, peers[:], a); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// newMember writes the configuration of one node of several.
func (b *bench) newMember(cluster string, i int, peers []string, a *agentSite) (*nodeSite, error) {
	name := "agg" + strconv.Itoa(i+1)
	n := &nodeSite{bench: b, dir: filepath.Join(b.dir, cluster+"-"+name)}
	if err := freePorts(&n.api); err != nil {
		return nil, err
	}
	files, err := b.memberCertificate(name)
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	for i, p := range peers {
		fmt.Fprintf(&list, "      agg%d = %q\n", i+1, p)
	}
	config := fmt.Sprintf(`aggregator {
  name     = %q
  data_dir = %q
  raft {
    listen = %q
    peers = {
%s    }
  }
  api { listen = [%q] }
  tls {
    ca   = %q
    cert = %q
    key  = %q
  }
}
access { plain_role = "monitor,read,write" }
`, name, n.dir, peers[i], list.String(), n.api, files.CA, files.Cert, files.Key)
	if a != nil {
		config += fmt.Sprintf("agent %q { address = %q }\n", a.name, a.listen)
	}
	return n, os.WriteFile(n.configText(), []byte(config), 0o600)
}

// memberCertificate returns the certificate of the node of that name, which is
// made once.
func (b *bench) memberCertificate(name string) (identity.Files, error) {
	files := identity.Files{CA: b.tls.CA, Cert: filepath.Join(b.caDir, name+".pem"), Key: filepath.Join(b.caDir, name+".key")}
	if _, err := os.Stat(files.Cert); err == nil {
		return files, nil
	}
	return b.makeCertificate(identity.Aggregator, name)
}

// startNodes starts all nodes and returns the one that leads first.
func (t *trioSite) startNodes(ctx context.Context) (*nodeSite, error) {
	leads := make(chan *nodeSite, len(t.nodes))
	failed := make(chan error, len(t.nodes))
	for _, n := range t.nodes {
		if err := n.launchNode(); err != nil {
			return nil, err
		}
		go func() {
			if err := n.awaitLeading(ctx, n.process.log.expectLine(leadsWord), n.process.done, n.process.endedError); err != nil {
				failed <- err
				return
			}
			leads <- n
		}()
	}
	select {
	case n := <-leads:
		return n, nil
	case err := <-failed:
		return nil, err
	}
}

// launchNode starts the node's process.
func (n *nodeSite) launchNode() (err error) {
	n.process, err = startProcess(n.bench.programPath("bursar"), []string{"aggregator", "-config", n.configText()}, nil)
	return err
}

func (t *trioSite) stopNodes() (err error) {
	for _, n := range t.nodes {
		err = errors.Join(err, n.stopNode(), os.RemoveAll(n.dir))
	}
	return err
}

func (t *trioSite) cpuSeconds() (sum float64) {
	for _, n := range t.nodes {
		sum += n.cpuSeconds()
	}
	return sum
}

// measureTrio measures agent → three nodes: every run with new ones.
func (b *bench) measureTrio(ctx context.Context) error {
	s, err := b.filledSet(ctx, b.measuredKinds()[0])
	if err != nil {
		return err
	}
	if s.node != nil { // it would pull too
		if err := s.node.stopNode(); err != nil {
			return err
		}
	}
	var rates, cpus []float64
	for i := range b.runs {
		rate, cpu, err := b.pullIntoTrio(ctx, s, "trio-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		rates, cpus = append(rates, rate), append(cpus, cpu)
	}
	line := overRuns("trio", "agent buffer → three nodes, all on this machine, "+s.ids+" ids", "rec/s", atLeast(100_000), rates)
	b.addLine(line.addNote("CPU of all three %.2f µs a record", medianOf(cpus)))
	b.replicated = line.Measured
	return nil
}

// pullIntoTrio returns records and microseconds of CPU a record. The clock ends
// when everything is acknowledged; then each node is asked how many records it
// has.
func (b *bench) pullIntoTrio(ctx context.Context, s *set, name string) (rate, cpu float64, err error) {
	if err := s.agent.ensureRunning(ctx); err != nil {
		return 0, 0, err
	}
	t, err := b.newTrio(name, s.agent)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, t.stopNodes()) }()
	b.progress.beginPiece("agent → three nodes, %d records, %s ids", b.n, s.ids)
	leader, err := t.startNodes(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := b.awaitAcknowledged(ctx, &set{ids: s.ids, agent: s.agent, node: leader}); err != nil {
		return 0, 0, err
	}
	seconds := time.Since(leader.leads).Seconds()
	for _, n := range t.nodes {
		if count, err := n.countRecords(ctx); err != nil || count != b.n {
			return 0, 0, fmt.Errorf("a node has %d records, want %d: %w", count, b.n, err)
		}
	}
	return float64(b.n) / seconds, 1e6 * t.cpuSeconds() / float64(b.n), nil
}
