//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// replicated is a site that is kept by two servers, of which one is written to.
type replicated struct {
	*warehouse // of the first server

	second    *warehouse
	zookeeper *rig.ZooKeeper
}

// makeReplicas starts two replicas and their ZooKeeper, and not yet the aggregator.
func makeReplicas(t *testing.T, seed uint64) *replicated {
	t.Helper()
	s := site.New(t)
	r := &replicated{zookeeper: rig.NewZooKeeper(t, s.Address())}
	r.zookeeper.Start()
	r.warehouse = &warehouse{T: t, site: s, agg: s.Aggregator(), label: "national", rng: rand.New(rand.NewPCG(seed, 37))}
	twin := *r.warehouse
	r.second = &twin
	for i, w := range []*warehouse{r.warehouse, r.second} {
		w.ch = rig.NewClickHouse(t, s.Address(), s.Address())
		w.ch.Replicate(r.zookeeper, s.Address(), "one", fmt.Sprint("r", i+1))
		w.ch.Start()
	}
	return r
}

// settings are those of an action that writes to one server of two.
func (r *replicated) settings() string {
	return fmt.Sprintf("replicas = [%q]\n batch = 200\n timeout = \"10s\"", r.second.ch.URL())
}

// agreeOnBoth compares both servers with the cluster.
func (r *replicated) agreeOnBoth() {
	r.Helper()
	both := []*warehouse{r.warehouse, r.second}
	for _, w := range both {
		w.arrive()
	}
	for _, w := range both {
		w.catchUp()
		w.agree()
	}
}

// catchUp waits until a server has fetched what was written: each table by itself.
func (w *warehouse) catchUp() {
	w.Helper()
	w.site.Eventually("the replica has caught up", func() (bool, string) {
		got, err := w.ch.Query("SELECT count() > 0 AND count() = sum(is_readonly = 0 AND queue_size = merges_in_queue AND (log_pointer > log_max_index OR log_max_index = 0)) FROM system.replicas")
		return err == nil && got == "1", fmt.Sprint(got, err)
	})
}

// leads waits until a server is the leader of the table ledger, or is not.
func (w *warehouse) leads(want string) {
	w.Helper()
	w.site.Eventually("is_leader is "+want, func() (bool, string) {
		got, err := w.ch.Query("SELECT is_leader FROM system.replicas WHERE table = 'ledger'")
		return err == nil && got == want, fmt.Sprint(got, err)
	})
}

func TestWarehouse_Replicas_HaveTheSameSums(t *testing.T) {
	t.Parallel()
	r := makeReplicas(t, 1)
	r.begin(r.ch.URL(), r.settings())
	r.fill(1000)
	r.shake(80)
	r.rest()
	r.agreeOnBoth()
	for _, w := range []*warehouse{r.warehouse, r.second} {
		if single := w.ch.MustQuery("SELECT name FROM system.tables WHERE database = 'bursar' AND engine LIKE '%MergeTree' AND engine NOT LIKE 'Replicated%'"); single != "schema" {
			t.Errorf("%q have no replicas, want the table schema alone", single)
		}
	}
	r.order("check=all", "the replica on "+r.second.ch.Address+" has the same")
	r.leads("1")
	r.order("replace=all", "has the same") // the leader drops partitions
	r.agreeOnBoth()

	r.second.ch.Kill()
	r.shake(40)
	r.rest()
	r.agree()
	r.order("check=all", "the replica on "+r.second.ch.Address+" was not compared")
	r.second.ch.Start()
	r.agreeOnBoth()

	r.ch.Kill()
	r.shake(40)
	r.says("connection refused")
	r.second.leads("1")
	r.ch.Start()
	r.rest()
	r.order("check=all", "has the same") // an order does not wait for the pause after a failure
	r.agreeOnBoth()
	r.leads("0")
	r.order("replace=all", "has the same") // a replica that does not lead deletes
	r.order("replace=all", "has the same") // and ZooKeeper remembers the blocks
	r.agreeOnBoth()
	if n := r.ch.MustQuery("SELECT count() > 0 FROM system.mutations WHERE table = 'ledger'"); n != "1" {
		t.Error("no rows were deleted, so nothing was tested")
	}

	r.zookeeper.Kill()
	r.shake(40)
	r.says("its server has lost ZooKeeper")
	r.zookeeper.Start()
	r.shake(40)
	r.rest()
	r.order("check=all", "has the same")
	r.agreeOnBoth()

	r.ch.Kill() // for good: the other one is written to
	r.exchange()
	r.shake(40)
	r.rest()
	r.order("check=all", "the replica on "+r.ch.Address+" was not compared")
	r.second.agree()
	r.ch.Start()
	r.agreeOnBoth()
	r.second.order("check=all", "the replica on "+r.ch.Address+" has the same")

	r.second.ch.MustQuery("INSERT INTO bursar.ledger SELECT * FROM bursar.ledger LIMIT 1")
	r.order("check=all", "the sums differ in ")
	r.order("replace=all", "has the same")
	r.agreeOnBoth()
}

// exchange has the action write to the other server.
func (r *replicated) exchange() {
	r.Helper()
	r.configure(strings.NewReplacer(r.ch.URL(), r.second.ch.URL(), r.second.ch.URL(), r.ch.URL()).Replace(r.agg.Blocks))
}

// forget removes the replica of the first server from ZooKeeper, as the README says for 18.16.
func (r *replicated) forget() {
	r.Helper()
	const query = "SELECT 'deleteall ' || zookeeper_path || '/replicas/r1' FROM system.replicas WHERE database = 'bursar' AND replica_name != 'r1'"
	text, err := os.ReadFile(filepath.Join(site.Top(), "plugins/action/warehouse/README.md"))
	if err != nil || !strings.Contains(string(text), query) {
		r.Fatalf("the README does not say %s: %v", query, err)
	}
	r.site.Eventually("the other server knows of no replica beside its own", func() (bool, string) {
		said := r.zookeeper.Command(r.second.ch.MustQuery(query))
		known, err := r.second.ch.Query("SELECT max(total_replicas) FROM system.replicas")
		return err == nil && known == "1", fmt.Sprint(known, err, said) // a node that the lost server had for its session may go just then
	})
}

// A server that is lost with rows that no other server has is removed from ZooKeeper, and a new
// one takes its place.
func TestWarehouse_ReplicaLostForGood_SumsAreRightAfterReplacement(t *testing.T) {
	t.Parallel()
	for i, changes := range []int{0, 40} {
		t.Run(fmt.Sprint(changes, " changes meanwhile"), func(t *testing.T) {
			t.Parallel()
			r := makeReplicas(t, uint64(3+i))
			r.begin(r.ch.URL(), strings.Replace(r.settings(), "10s", "5s", 1))
			r.fill(300)
			r.shake(40)
			r.rest()
			r.agreeOnBoth()

			r.second.ch.Kill()
			if out, err := r.agg.Bursar("actions", "pause", "warehouse/national"); err != nil {
				t.Fatal(out, err)
			}
			r.shake(100)
			r.rest()
			if out, err := r.agg.Bursar("actions", "resume", "warehouse/national"); err != nil {
				t.Fatal(out, err)
			}
			r.order("check=all", "agree at change") // one batch
			r.ch.Lose()
			r.second.ch.Start()
			r.exchange()
			r.order("check=all", "still to apply")
			r.shake(changes)
			r.rest()
			r.forget()
			if changes == 0 { // the same batch once more
				r.order("check=all", "answers that it has the rows of batch ")
			}
			r.order("replace=all", "the replica on "+r.ch.Address+" was not compared")
			r.second.agree()
			r.ch.Start()
			r.saysAfterAll("the replica on " + r.ch.Address + " has the same")
			r.agreeOnBoth()

			r.ch.Lose()
			r.ch.Start()
			r.order("check=all", "remove the replica of the former server from ZooKeeper")
			r.forget()
			r.saysAfterAll("the replica on " + r.ch.Address + " has the same")
			r.agreeOnBoth()
		})
	}
}

// With insert_quorum a batch is written when both servers have it.
func TestWarehouse_QuorumOfTwo_WritingWaitsForTheOtherServer(t *testing.T) {
	t.Parallel()
	r := makeReplicas(t, 2)
	for _, w := range []*warehouse{r.warehouse, r.second} {
		w.ch.Kill()
		w.ch.SetProfile("<insert_quorum>2</insert_quorum><insert_quorum_timeout>2000</insert_quorum_timeout>")
		w.ch.Start()
	}
	r.begin(r.ch.URL(), r.settings())
	r.shake(40)
	r.rest()
	r.agreeOnBoth()

	r.second.ch.Kill()
	r.shake(40)
	r.says("uorum") // it is too small, or was not reached in time
	r.second.ch.Start()
	r.rest()
	r.saysAfterAll("the replica on " + r.second.ch.Address + " has the same")
	r.agreeOnBoth()
}

// Of a part during whose insert ZooKeeper was lost a replica may think otherwise later.
func TestWarehouse_ReplicasKilledAtAnyPoint_SumsStayRight(t *testing.T) {
	t.Parallel()
	r := makeReplicas(t, *seed)
	b := newBreaker(r.warehouse)
	b.kinds = append(b.kinds, "kill ZooKeeper", "freeze ZooKeeper", "freeze ZooKeeper", "kill the other replica")
	b.deaths["kill ZooKeeper"] = death{r.zookeeper.Kill, r.zookeeper.Start}
	b.deaths["kill the other replica"] = death{r.second.ch.Kill, r.second.ch.Start}
	b.deaths["freeze ZooKeeper"] = death{func() {
		r.zookeeper.Freeze()
		time.Sleep(4 * time.Second) // the session of the replicas ends after three
	}, r.zookeeper.Thaw}
	b.endure(*kills/2, fmt.Sprintf("replicas = [%q]", r.second.ch.URL()))
	r.order("check=all", "has the same")
	r.agreeOnBoth()
}
