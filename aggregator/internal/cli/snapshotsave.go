package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/durable"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) snapshotSaveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "save FILE", Short: "Save the cluster's state to a file, while it runs",
		Long: `Save the cluster's state to a file, while it runs. The file holds all that was
acknowledged when the command started. It is verified as it arrives and replaces an
existing file only when it is complete and on disk. Any node can answer.`,
		Example: "  bursar snapshot save /var/backups/bursar.snapshot\n  bursar snapshot save -address https://agg2.example.org:8443 bursar.snapshot",
		Args:    cobra.ExactArgs(1),
	}
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		meta, err := p.saveSnapshot(cmd.Context(), c, args[0])
		if err == nil {
			p.say("%s: %d records at index %d, state hash %s", args[0], meta.Records, meta.Index, meta.Hash)
		}
		return err
	}
	return cmd
}

// saveSnapshot writes the archive to path; when it fails, what was there stays.
func (p *Program) saveSnapshot(ctx context.Context, c *client.Client, path string) (meta archive.Meta, err error) {
	err = durable.ReplaceWith(path, 0o600, func(f *os.File) error {
		meta, err = p.receiveSnapshot(ctx, c, f)
		return err
	})
	return meta, err
}

// receiveSnapshot writes the archive, and verifies it meanwhile.
func (p *Program) receiveSnapshot(ctx context.Context, c *client.Client, into io.Writer) (meta archive.Meta, err error) {
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := c.SaveSnapshot(ctx, pw)
		done <- err
		pw.CloseWithError(err)
	}()
	bar := p.newBar("save", 0)
	out := bufio.NewWriterSize(into, 1<<20)
	meta, err = archive.Read(io.TeeReader(pr, out), func(m archive.Meta) error {
		bar.total = m.Bytes
		return nil
	}, func(_ string, _ int64, content io.Reader) error {
		_, err := io.Copy(io.Discard, bar.wrapReader(ctx, content))
		return err
	})
	bar.clearLine()
	pr.CloseWithError(errors.Join(err, errors.New("the rest is not wanted")))
	if sent := <-done; sent != nil && (err == nil || errors.Is(err, sent)) {
		return meta, sent // in its own words
	}
	return meta, errors.Join(err, out.Flush())
}

func (p *Program) snapshotRestoreCommand() *cobra.Command {
	var yes, foreign bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore the whole cluster to a snapshot",
		Long: `Restore the whole cluster to a snapshot, while it runs. All nodes replace their
state. Records that were added since the snapshot come back from the agents as far as
they retain them; records that were pushed to the REST interface since then do not come
back. Tokens that were revoked since the snapshot stay revoked, and agents that were
removed stay removed. Give the address of the leader.

The snapshot of another cluster is refused: agents know a cluster by its id, and with
two clusters of one id they would drop data that one of them lacks. -foreign accepts
it, for a cluster that no longer exists; tokens and agents are then those of the
snapshot.`,
		Example: "  bursar snapshot restore bursar.snapshot\n  bursar snapshot restore -yes bursar.snapshot",
		Args:    cobra.ExactArgs(1),
	}
	conn := p.connectionFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&foreign, "foreign", false, "take the snapshot of another cluster")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		return p.restoreSnapshot(cmd.Context(), c, args[0], yes, foreign)
	}
	return cmd
}

func (p *Program) restoreSnapshot(ctx context.Context, c *client.Client, path string, yes, foreign bool) error {
	file, size, err := openSized(path)
	if err != nil {
		return err
	}
	defer file.Close()
	meta, err := archive.ReadMeta(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	what := fmt.Sprintf("the cluster goes back to %s: %d records at index %d", meta.Made.UTC().Format(time.DateTime+" MST"), meta.Records, meta.Index)
	if err := p.confirm(yes, what); err != nil {
		return err
	}
	bar := p.newBar("restore", size)
	done, err := c.RestoreSnapshot(ctx, &v1.RestoreSnapshotQuery{Foreign: foreign}, bar.wrapReader(ctx, file))
	bar.clearLine()
	if err != nil {
		return err
	}
	p.say("restored: %d records, incarnation %s; agents now hand over what is newer", meta.Records, done.Incarnation)
	if len(done.AgentsRemoved) > 0 {
		p.say("agents that were removed since the snapshot stay removed: %s", strings.Join(done.AgentsRemoved, ", "))
	}
	if len(done.AgentsUnverified) > 0 {
		p.say("agents of the snapshot, and it is not known whether they were removed since: %s\nremove each that was: bursar agents remove NAME", strings.Join(done.AgentsUnverified, ", "))
	}
	return nil
}

// confirm asks whether something may be done that cannot be undone.
func (p *Program) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	fmt.Fprintf(p.Stderr, "%s%s.\nType yes to continue: ", strings.ToUpper(what[:1]), what[1:])
	line, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if strings.TrimSpace(line) != "yes" {
		return errors.Join(errors.New("nothing was done; -yes does not ask"), notEOF(err))
	}
	return nil
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
