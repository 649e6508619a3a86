package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
)

func (p *Program) snapshotCommand() *cobra.Command {
	return groupCommand("snapshot", "Save the cluster's state to a file, and restore it",
		"  bursar snapshot save bursar.snapshot\n  bursar snapshot verify bursar.snapshot",
		p.snapshotSaveCommand(), p.snapshotRestoreCommand(), p.snapshotInspectCommand(), p.snapshotVerifyCommand())
}

func (p *Program) snapshotInspectCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Show what a snapshot holds",
		Long: `Show what a snapshot holds and where it comes from. Only the start of the file is
read: "bursar snapshot verify" checks all of it.`,
		Example: "  bursar snapshot inspect bursar.snapshot\n  bursar snapshot inspect bursar.snapshot -format json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			meta, err := archive.ReadMeta(file)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return p.showMeta(f, &meta)
		},
	}
	formatFlag(cmd, &f, asTable, asJSON)
	return cmd
}

func (p *Program) showMeta(f format, meta *archive.Meta) error {
	t := newTable("WHAT", "VALUE")
	for _, row := range [][2]string{
		{"cluster", orDash(meta.Cluster)}, {"incarnation", orDash(meta.Incarnation)}, {"cluster version", strconv.FormatUint(uint64(meta.ClusterVersion), 10)},
		{"records", strconv.FormatUint(meta.Records, 10)}, {"changes", strconv.FormatUint(meta.Changes, 10)},
		{"index", strconv.FormatUint(meta.Index, 10)}, {"term", strconv.FormatUint(meta.Term, 10)}, {"state hash", meta.Hash},
		{"made", meta.Made.UTC().Format(time.DateTime + " MST")}, {"node", orDash(meta.Node)}, {"version", orDash(meta.Version)},
		{"files", strconv.Itoa(meta.Files)}, {"bytes unpacked", strconv.FormatInt(meta.Bytes, 10)}, {"format", strconv.Itoa(meta.Format)},
	} {
		t.addRow(row[0], row[1])
	}
	return p.writeAnswer(meta, f, page{table: t})
}

func (p *Program) snapshotVerifyCommand() *cobra.Command {
	var scratch string
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Load a snapshot and check everything in it",
		Long: `Read a snapshot to its end, check every checksum, load it into a store of its
own in a scratch folder and recompute everything derived: indexes, lists, counters
and the state hash. The folder needs as much room as the unpacked snapshot, and is
removed afterwards.`,
		Example: "  bursar snapshot verify bursar.snapshot\n  bursar snapshot verify bursar.snapshot -scratch /var/tmp",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			dir, err := os.MkdirTemp(scratch, "bursar-verify-*")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			return p.verifySnapshot(cmd.Context(), args[0], filepath.Join(dir, "state"))
		},
	}
	cmd.Flags().StringVar(&scratch, "scratch", "", "the `folder` to unpack into, instead of the system's for temporary files")
	return cmd
}

func (p *Program) verifySnapshot(ctx context.Context, path, dir string) error {
	file, size, err := openSized(path)
	if err != nil {
		return err
	}
	defer file.Close()
	bar := p.newBar("read", size)
	meta, err := archive.Unpack(bar.wrapReader(ctx, file), dir, nil)
	bar.clearLine()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := archive.CheckImage(ctx, dir, meta); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p.say("%s is sound: %d records at index %d, state hash %s", path, meta.Records, meta.Index, meta.Hash)
	return nil
}

func openSized(path string) (*os.File, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}
