package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/control"
)

func (a *app) forgetCommand() *cobra.Command {
	var cluster string
	c := a.addFormatFlag(&cobra.Command{
		Use: "forget", Short: "Make the running agent forget a cluster that no longer exists", Args: cobra.NoArgs,
		Long: `An agent keeps all frames that a known cluster has not acknowledged, however long that
cluster is silent. A cluster that will never return, because its disks were wiped and it
has a new id, must be forgotten with this command. If it returns after all, the agent
reports which frames are gone. "bursar-agent status" shows the clusters.`,
		Example: "  bursar-agent forget -cluster 9f86d081",
		RunE: func(c *cobra.Command, _ []string) error {
			if cluster == "" {
				return errors.New("say which -cluster; `bursar-agent status` shows them")
			}
			client := a.newClient()
			defer client.Close()
			f, err := client.Forget(c.Context(), control.Forget{Cluster: cluster})
			if err != nil {
				return err
			}
			if a.format == "json" {
				return printJSON(a.Out, f)
			}
			_, err = fmt.Fprintf(a.Out, "Forgot cluster %s, %s; %d frames were dropped.\n", f.Cluster.ID, clusterLag(f.Cluster), f.Dropped)
			return err
		},
	})
	c.Flags().StringVar(&cluster, "cluster", "", "`ID` of the cluster")
	return c
}

// clusterLag says in words how far the cluster is.
func clusterLag(c control.Cluster) string {
	if c.Away {
		return "not back since the buffer became another one"
	}
	return fmt.Sprintf("%d frames behind", c.Behind)
}

// silence is for how long a cluster that lacks frames may say nothing before
// people are told of it.
const silence = 24 * time.Hour

// silentClusters says, for each cluster that lacks frames and has long said nothing, what
// that means and what to do.
func silentClusters(b control.Buffer, now time.Time) []string {
	var hints []string
	for _, c := range b.Clusters {
		if (c.Behind > 0 || c.Away) && now.Sub(c.At) > silence {
			hints = append(hints, fmt.Sprintf("no contact with cluster %s for %s; frames that it lacks are kept for it; if it no longer exists: bursar-agent forget -cluster %s", c.ID, formatAge(c.At, now), c.ID))
		}
	}
	return hints
}
