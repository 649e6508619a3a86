//go:build e2e

package runbooks

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

func TestThereIsAGap(t *testing.T) {
	t.Parallel()
	c := newClusterWith(t, `max_size = "1MiB"`)
	c.begin(200)
	c.follow(blocks(t, "Save a snapshot")[0], c.nodes[0])
	c.pad = 100
	c.write(16_000) // more than the agent keeps
	c.whole(c.nodes...)
	c.follow(blocks(t, "Restore a snapshot")[1], c.leader())
	c.await(c.nodes[0], true, "gaps")
	steps := blocks(t, "There is a gap")
	c.told(c.follow(steps[0], c.nodes[1]), c.agent.Name)
	c.told(c.follow(put(steps[1], "slurm/nemo", "replay/lab"), c.nodes[0]), "Recollected replay/lab")
	c.whole(c.nodes...)
}

func TestAnAgentsBufferIsDamaged(t *testing.T) {
	t.Parallel()
	c := running(t)
	for _, g := range c.nodes {
		c.stop(g)
	}
	c.write(100)
	c.site.Eventually("the agent has what no node has", func() (bool, string) {
		s, err := c.agent.Status()
		return err == nil && s.Source("lab").Counts.Records == int64(c.wrote), fmt.Sprint(s, err)
	})
	c.agent.Stop()
	c.damageLast(filepath.Join(c.agent.DataDir, "buffer.db"), "chunks") // the newest frames
	c.agent.Start()
	c.start(c.nodes...)
	c.await(c.nodes[0], true, "agent-damaged")
	steps := blocks(t, "An agent's buffer is damaged")
	c.told(c.sh("bursar status", c.nodes[0]), "buffer.db")
	c.follow(steps[0], c.nodes[0])
	c.write(100)
	c.whole(c.nodes...)
}

// damageLast turns over a bit in the middle of the last value of a bucket, in a file
// that nobody has open.
func (c *cluster) damageLast(path, bucket string) {
	c.t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, v := b.Cursor().Last()
		v = append([]byte(nil), v...)
		v[len(v)/2] ^= 4
		return b.Put(append([]byte(nil), k...), v)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		c.t.Fatal(err)
	}
}
