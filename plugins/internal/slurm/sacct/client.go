package sacct

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
)

// ErrTooWide is the error of a window that slurmdbd's MaxQueryTimeRange refuses.
var ErrTooWide = errors.New("the window is wider than slurmdbd allows")

// Client asks one sacct.
type Client struct {
	Path      string        // of the program
	SlurmConf string        // path of slurm.conf; "": as sacct finds it
	Clusters  []string      // -M; none: the cluster of slurm.conf
	Timeout   time.Duration // without any output, > 0
	Ignore    []string      // text of harmless lines on standard error
}

// Query is one question. Either the window or Jobs is set.
type Query struct {
	Columns  []string
	From, To time.Time // jobs that could run before To and did not end before From
	Jobs     []string  // ids, for all their runs
	Steps    bool
	// States narrows a window to the jobs that ended in it, its end included, in one
	// of these states. It makes sacct ask the job table by state and end, and not by
	// the time in which jobs could run.
	States []string
}

// Columns returns the columns that this version of sacct has.
func (c *Client) Columns(ctx context.Context) ([]string, error) {
	var names []string
	err := c.sacctTool("--helpformat").Run(ctx, func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, 1<<20))
		names = strings.Fields(string(text))
		return err
	})
	if err == nil && len(names) == 0 {
		err = errors.New("sacct --helpformat names no columns")
	}
	return names, err
}

// Rows asks q and calls yield with each row, in sacct's order: a job, then its
// steps. An error of yield ends it and is returned.
func (c *Client) Rows(ctx context.Context, q Query, yield func(Row) error) error {
	delimiter := newDelimiter()
	return c.sacctTool(c.sacctArgs(q, delimiter)...).Run(ctx, func(r io.Reader) error {
		rows := NewRows(r, delimiter, len(q.Columns))
		for {
			row, err := rows.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := yield(row); err != nil {
				return err
			}
		}
	})
}

func (c *Client) sacctTool(args ...string) *process.Tool {
	return &process.Tool{Name: "sacct", Path: c.Path, Args: args, Env: process.Environment(c.SlurmConf), Timeout: c.Timeout, Ignore: c.Ignore,
		Known: map[string]error{"Too wide of a date range": ErrTooWide}}
}

func (c *Client) sacctArgs(q Query, delimiter string) []string {
	args := []string{"--allusers", "--duplicates", "--noheader", "--noconvert", "--parsable",
		"--delimiter=" + delimiter, "--format=" + strings.Join(q.Columns, ",")}
	if len(c.Clusters) > 0 {
		args = append(args, "--clusters="+strings.Join(c.Clusters, ","))
	}
	if !q.Steps {
		args = append(args, "--allocations")
	}
	if len(q.Jobs) > 0 {
		return append(args, "--jobs="+strings.Join(q.Jobs, ","), "--starttime="+formatTime(time.Unix(86400, 0)))
	}
	if len(q.States) > 0 {
		args = append(args, "--state="+strings.Join(q.States, ","))
	}
	return append(args, "--starttime="+formatTime(q.From), "--endtime="+formatTime(q.To))
}

// formatTime writes a time as sacct reads it with TZ=UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// newDelimiter makes a delimiter that no one could know beforehand.
func newDelimiter() string {
	return fmt.Sprintf("\x1f%s", rand.Text()[:6])
}
