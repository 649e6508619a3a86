//go:build e2e

package faults

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is what is done to a daemon, a disk or the network.
type Kind string

// The kinds of faults.
const (
	Kill      Kind = "kill"       // kill -9, started again
	KillAll   Kind = "kill all"   // all aggregators at once
	KillChild Kind = "kill child" // the plugins of an agent
	Cut       Kind = "power cut"  // of a machine with its disk
	CutAll    Kind = "cut all"    // of all aggregators at once
	Restart   Kind = "restart"    // SIGTERM, started again
	Pause     Kind = "pause"      // SIGSTOP, SIGCONT
	Isolate   Kind = "isolate"    // nothing from or to it arrives
	Deafen    Kind = "deafen"     // nothing arrives at it
	Mute      Kind = "mute"       // nothing from it arrives
	Part      Kind = "part"       // two daemons do not hear each other
	Lag       Kind = "lag"        // all from and to it is late
	Reset     Kind = "reset"      // all its connections break
	FillDisk  Kind = "full disk"
	SlowDisk  Kind = "slow disk" // hangs and works by turns
	HangDisk  Kind = "hang disk" // hangs
	Jump      Kind = "clock jump"
	Flip      Kind = "flip" // a bit in a file, while the daemon is down
	Wipe      Kind = "wipe" // its disk is replaced by an empty one
)

// Whom a fault strikes; which daemon that is, is seen when it happens.
const (
	Leader   = "leader"
	Follower = "follower"
	Agent    = "agent"
)

// Fault is one thing that goes wrong.
type Fault struct {
	Kind  Kind
	Whom  string        // role
	Which int           // of the followers or agents
	After time.Duration // since the fault before
	For   time.Duration // how long it lasts
	Salt  uint64        // for what else the fault has to choose
}

// losesData reports whether the fault may cost a machine its data.
func (f Fault) losesData() bool { return f.Kind == Flip || f.Kind == Wipe }

// String is how a plan is printed.
func (f Fault) String() string {
	return fmt.Sprintf("+%dms %s %s%d %dms salt %d", f.After.Milliseconds(), f.Kind, f.Whom, f.Which, f.For.Milliseconds(), f.Salt)
}

// Cycle is what happens between two comparisons with the truth.
type Cycle struct {
	Jobs   int // that the schedulers make up meanwhile, each
	Faults []Fault
}

// choice is a kind of fault with how often it comes and whom it may strike.
type choice struct {
	kind   Kind
	weight int
	whom   []string
	most   time.Duration // that it lasts
}

var nodesAndAgents = []string{Leader, Follower, Agent}

// faultChoices are all kinds; one is left out where the site cannot have it.
func faultChoices(nodes int) []choice {
	all := []choice{
		{Kill, 6, nodesAndAgents, 0},
		{KillAll, 1, []string{Leader}, 0},
		{KillChild, 2, []string{Agent}, 0},
		{Cut, 5, nodesAndAgents, 0},
		{CutAll, 2, []string{Leader}, 0},
		{Restart, 2, nodesAndAgents, 0},
		{Pause, 4, nodesAndAgents, 2500 * time.Millisecond},
		{Isolate, 3, nodesAndAgents, 2500 * time.Millisecond},
		{Lag, 2, nodesAndAgents, 1500 * time.Millisecond},
		{Reset, 2, nodesAndAgents, 0},
		{FillDisk, 2, nodesAndAgents, 1000 * time.Millisecond},
		{SlowDisk, 2, nodesAndAgents, 1500 * time.Millisecond},
		{HangDisk, 1, nodesAndAgents, 3000 * time.Millisecond},
		{Jump, 1, []string{Leader, Follower}, 1500 * time.Millisecond},
		{Flip, 2, nodesAndAgents, 0},
	}
	wiped := []string{Agent} // the data of a node alone are nowhere else
	if nodes > 1 {
		wiped = nodesAndAgents
		all = append(all,
			choice{Deafen, 2, []string{Leader, Follower}, 2500 * time.Millisecond},
			choice{Mute, 2, []string{Leader, Follower}, 2500 * time.Millisecond},
			choice{Part, 2, []string{Leader, Follower}, 2500 * time.Millisecond})
	}
	return append(all, choice{Wipe, 1, wiped, 0})
}

// Schedule makes a plan of so many cycles: the same for the same seed and size.
func Schedule(seed uint64, cycles, nodes, agents int, only Kind) []Cycle {
	chance := rand.New(rand.NewPCG(seed, 3))
	kinds := faultChoices(nodes)
	if only != "" {
		var one []choice
		for _, k := range kinds {
			if k.kind == only {
				one = append(one, k)
			}
		}
		kinds = one
	}
	var bag []choice
	for _, k := range kinds {
		for range k.weight {
			bag = append(bag, k)
		}
	}
	plan := make([]Cycle, cycles)
	for i := range plan {
		plan[i].Jobs = 100 + chance.IntN(400)
		first := drawFault(chance, bag, nodes, agents)
		plan[i].Faults = []Fault{first}
		if chance.IntN(2) == 0 && only == "" {
			second := drawFault(chance, bag, nodes, agents)
			for second.losesData() { // what three nodes survive is the loss of one
				second = drawFault(chance, bag, nodes, agents)
			}
			plan[i].Faults = append(plan[i].Faults, second)
		}
	}
	return plan
}

func drawFault(chance *rand.Rand, bag []choice, nodes, agents int) Fault {
	c := bag[chance.IntN(len(bag))]
	f := Fault{Kind: c.kind, Whom: c.whom[chance.IntN(len(c.whom))], Salt: chance.Uint64() >> 32}
	if f.Whom == Follower && nodes == 1 {
		f.Whom = Leader
	}
	switch f.Whom {
	case Follower:
		f.Which = chance.IntN(nodes - 1)
	case Agent:
		f.Which = chance.IntN(agents)
	}
	f.After = time.Duration(chance.IntN(500)) * time.Millisecond
	if c.most > 0 {
		f.For = c.most/5 + time.Duration(chance.Int64N(int64(c.most*4/5)))
	}
	return f
}
