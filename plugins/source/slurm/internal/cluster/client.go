package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/getent"
	"github.com/bursar-accounting/bursar/plugins/internal/process"
)

// Client asks one Slurm. The paths are those of the commands.
type Client struct {
	Scontrol, Squeue, Sacctmgr, Getent string

	SlurmConf string        // path of slurm.conf; "": as the commands find it
	Clusters  []string      // -M; none: the cluster of slurm.conf
	Timeout   time.Duration // without any output, > 0
	Ignore    []string      // text of harmless lines on standard error
}

func (c *Client) runCommand(ctx context.Context, name, path string, read func(io.Reader) error, args ...string) error {
	t := process.Tool{Name: name, Path: path, Args: args, Env: process.Environment(c.SlurmConf), Timeout: c.Timeout, Ignore: c.Ignore}
	return t.Run(ctx, func(r io.Reader) error {
		if err := read(r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// withClusters adds -M to args where clusters are configured.
func (c *Client) withClusters(args ...string) []string {
	if len(c.Clusters) > 0 {
		args = append(args, "--clusters="+strings.Join(c.Clusters, ","))
	}
	return args
}

// Nodes returns the nodes of the clusters, those of hidden partitions too.
func (c *Client) Nodes(ctx context.Context) (nodes []Node, err error) {
	args := append(c.withClusters("--all", "--oneliner"), "show", "nodes")
	err = c.runCommand(ctx, "scontrol", c.Scontrol, func(r io.Reader) error {
		nodes, err = ReadNodes(r)
		return err
	}, args...)
	return nodes, err
}

// Jobs calls yield with each job that runs or waits, tasks of arrays one by one.
func (c *Client) Jobs(ctx context.Context, yield func(Job)) error {
	args := c.withClusters("--noheader", "--all", "--array", "--format="+queueFormat)
	return c.runCommand(ctx, "squeue", c.Squeue, func(r io.Reader) error { return ReadQueue(r, yield) }, args...)
}

// Associations returns who may charge which account of the clusters.
func (c *Client) Associations(ctx context.Context) (list []Association, err error) {
	args := []string{"--noheader", "--parsable2", "show", "associations", "format=cluster,user,account"}
	names, err := c.clusterNames(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		args = append(args, "where", "cluster="+strings.Join(names, ","))
	}
	err = c.runCommand(ctx, "sacctmgr", c.Sacctmgr, func(r io.Reader) error {
		list, err = ReadAssociations(r)
		return err
	}, args...)
	return list, err
}

// clusterNames are those of the clusters; none for all that slurmdbd has.
func (c *Client) clusterNames(ctx context.Context) ([]string, error) {
	switch {
	case slices.ContainsFunc(c.Clusters, func(s string) bool { return strings.EqualFold(s, "all") }):
		return nil, nil
	case len(c.Clusters) > 0:
		return c.Clusters, nil
	}
	name := ""
	err := c.runCommand(ctx, "scontrol", c.Scontrol, func(r io.Reader) (err error) {
		name, err = ReadClusterName(r)
		return err
	}, "show", "config")
	return []string{name}, err
}

const (
	askNames = 200 // users in one question
	unknown  = 2   // getent's status when it does not know all of them
)

// Names returns the names of those users that have one.
func (c *Client) Names(ctx context.Context, users []string) (map[string]string, error) {
	all := map[string]string{}
	for some := range slices.Chunk(users, askNames) {
		err := c.runCommand(ctx, "getent", c.Getent, func(r io.Reader) error {
			names, err := getent.ReadNames(r)
			maps.Copy(all, names)
			return err
		}, append([]string{"passwd", "--"}, some...)...)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == unknown {
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
