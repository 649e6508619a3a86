package source

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Pods that are held come and go while the source is killed, the API server goes away,
// and changes are forgotten: each run is there once, with its own times.
func TestKills_PodsThatComeAndGo_EachRunOnceToTheSecond(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			kills(t, rand.New(rand.NewPCG(seed, 16)))
		})
	}
}

func kills(t *testing.T, chance *rand.Rand) {
	s := newSite(t)
	hold := sdk.Node{Name: "finalizer", Value: sdk.Bool(true)}
	s.start(hold)
	want := map[string][2]int{}
	stages := map[int]int{}
	const all = 60
	for next, over, clock := 0, 0, 0; over < all; clock++ {
		s.set(at(clock))
		if next < all && len(stages) < 12 {
			stages[next] = 0
			next++
		}
		for i, stage := range stages {
			name := fmt.Sprintf("p%d", i)
			p := pod("phys", name, kube.Pending)
			if old := s.server.Pod("phys", name); old != nil {
				p.Metadata = old.Metadata
			} else {
				p.Metadata.Finalizers = []string{finalizer}
			}
			start := 10 * i
			switch stage {
			case 1:
				p.Status = pod("phys", name, kube.Running, running(0, start)).Status
			case 2:
				p.Status = pod("phys", name, kube.Running, running(1, start+3, terminated(start, start+2, 1))).Status
			case 3:
				p.Status = pod("phys", name, kube.Succeeded, overAfterRestart(start)).Status
				want[runName(name, "main", start)] = [2]int{start, start + 2}
				want[runName(name, "main", start+3)] = [2]int{start + 3, start + 7}
			case 4:
				s.server.Delete("phys", name, at(clock))
				delete(stages, i)
				over++
				continue
			}
			s.server.Put(p)
			stages[i] = stage + 1
		}
		disturb(s, chance, hold)
	}
	s.await("all pods to be released", func() bool { return s.server.Count() == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	got := map[string][2]int{}
	for name, j := range s.jobs {
		if !j.Ended || valueOf(j, "estimated").Bool() {
			t.Errorf("%s: ended %t, estimated %t", name, j.Ended, valueOf(j, "estimated").Bool())
		}
		got[name] = [2]int{int(valueOf(j, "start").Time().Sub(noon()).Minutes()), int(valueOf(j, "stop").Time().Sub(noon()).Minutes())}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-Kubernetes +sent)\n%s", diff)
	}
}

func overAfterRestart(start int) kube.ContainerStatus {
	return over(1, start+3, start+7, 0, terminated(start, start+2, 1))
}

// disturb does one of the things that may happen at any time.
func disturb(s *site, chance *rand.Rand, hold sdk.Node) {
	time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond)
	switch chance.IntN(8) {
	case 0:
		s.kill()
		s.start(hold)
	case 1:
		s.stop()
		s.start(hold)
	case 2:
		s.server.Down(true)
		time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond)
		s.server.Down(false)
	case 3:
		s.server.Compact()
	case 4:
		s.kill()
		s.server.Compact()
		s.start(hold)
	}
}
