//go:build e2e

package site

import (
	"bytes"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// CollectOnce collects once into the buffer of an agent that does not run.
func (a *Agent) CollectOnce() {
	a.site.t.Helper()
	if out, err := a.site.Run("bursar-agent", "collect", "-once", "-dev", "-config", a.Config); err != nil {
		a.site.t.Fatal(out, err)
	}
}

// Frames returns the frames in the buffer of an agent that does not run.
func (a *Agent) Frames() []wire.Frame {
	a.site.t.Helper()
	var all []wire.Frame
	db, err := bbolt.Open(filepath.Join(a.DataDir, "buffer.db"), 0o600, &bbolt.Options{Timeout: time.Minute, ReadOnly: true})
	if err != nil {
		a.site.t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("chunks")).ForEach(func(_, value []byte) error {
			const stamp = 8                                       // before the chunk
			chunk, err := frame.Parse(bytes.Clone(value[stamp:])) // frames share its bytes
			if err != nil {
				return err
			}
			for seq, text := range chunk.Frames() {
				var f wire.Frame
				if err := wire.DecodeFrame(text, &f); err != nil {
					return fmt.Errorf("frame %d: %w", seq, err)
				}
				all = append(all, f)
			}
			return nil
		})
	})
	if err != nil {
		a.site.t.Fatal(err)
	}
	return all
}
