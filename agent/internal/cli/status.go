package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/serve"
	"github.com/bursar-accounting/bursar/hcl"
)

// newClient makes a client of the agent of the configuration, of which only the data
// folder counts here.
func (a *app) newClient() *control.Client {
	cfg, _ := config.Load(a.paths...)
	return control.NewClient(cfg.SocketPath())
}

func (a *app) statusCommand() *cobra.Command {
	return a.addFormatFlag(&cobra.Command{
		Use: "status", Short: "Show the state of the running agent", Args: cobra.NoArgs,
		Example: "  bursar-agent status\n  bursar-agent status -format json",
		RunE: func(c *cobra.Command, _ []string) error {
			client := a.newClient()
			defer client.Close()
			s, err := client.Status(c.Context())
			if err != nil {
				return err
			}
			if a.format == "json" {
				return printJSON(a.Out, s)
			}
			return printStatus(a.Out, s, time.Now())
		},
	})
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printStatus(w io.Writer, s control.Status, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "Agent\t%s\n", s.Name)
	fmt.Fprintf(t, "Version\t%s\n", s.Version)
	fmt.Fprintf(t, "Running for\t%s\n", formatAge(s.Started, now))
	if s.Listen != "" || len(s.Dial) == 0 {
		fmt.Fprintf(t, "Listening on\t%s\n", orDefault(s.Listen, "nothing: no aggregator can pull"))
	}
	for _, d := range s.Dial {
		to := ""
		if d.State == serve.Connected {
			to = " to " + d.Aggregator
		}
		fmt.Fprintf(t, "Dials in at\t%s: %s%s%s\n", d.Address, d.State, to, prefixIfSet(": ", d.Problem))
	}
	if c := s.Certificate; c != nil {
		fmt.Fprintf(t, "Certificate\tuntil %s\n", c.Ends.Format("2006-01-02 15:04 MST"))
	}
	b := s.Buffer
	fmt.Fprintf(t, "Buffer\t%d frames, %s of %s\n", b.Last+1-b.First, hcl.Size{Bytes: b.Bytes}.String(), hcl.Size{Bytes: b.MaxBytes}.String())
	for _, c := range b.Clusters {
		fmt.Fprintf(t, "Cluster\t%s, %s, last contact %s ago\n", c.ID, clusterLag(c), formatAge(c.At, now))
	}
	if len(b.Clusters) == 0 {
		fmt.Fprintf(t, "Cluster\tnone has pulled yet\n")
	}
	fmt.Fprintf(t, "\nSOURCE\tSTATE\tPLUGIN\tLAST SUCCESS\tCOMPLETE TO\tSENT\tUNCHANGED\tLEFT OUT\tQUARANTINED\n")
	for _, x := range s.Sources {
		fmt.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", x.Type, x.Label, x.State, orDefault(x.Plugin, "-"), formatTime(x.LastSuccess), formatTime(x.CompleteTo),
			x.Counts.Records, x.Counts.Unchanged, x.Counts.Filtered+x.Counts.Withdrawn, x.Counts.Quarantined+x.Counts.Refused)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if b.Damage != "" {
		fmt.Fprintf(w, "\n%s\nNo aggregator gets beyond that. Do first: %s\n", b.Damage, b.Remedy)
	}
	for _, hint := range silentClusters(b, now) {
		fmt.Fprintf(w, "\n%s\n", hint)
	}
	if c := s.Certificate; c != nil && c.Late(now) {
		fmt.Fprintf(w, "\nThe certificate of %s ends on %s and is not renewed: %s.\nDo first: bursar token create -role agent -name %s   # on an aggregator; run the printed line here\n",
			s.Name, c.Ends.Format("2006-01-02 15:04 MST"), orDefault(c.Problem, "no cluster has renewed it"), s.Name)
	}
	return printTroubles(w, s)
}

// printTroubles tells what is wrong with sources, and how far back-fills are.
func printTroubles(w io.Writer, s control.Status) error {
	for _, x := range s.Sources {
		name := x.Type + "/" + x.Label
		if x.Error != "" {
			fmt.Fprintf(w, "\n%s: %s\n", name, x.Error)
		}
		for i := range x.Findings {
			fmt.Fprintf(w, "\n%s: %s\nDo first: %s\n", name, x.Findings[i].String(), x.Findings[i].Do)
		}
		if x.Hangs > 0 {
			fmt.Fprintf(w, "\n%s: the plugin hung and was killed %d times; its goroutines are in the agent's log\n", name, x.Hangs)
		}
		if p := x.Progress; p != nil && p.Total > 0 {
			fmt.Fprintf(w, "\n%s: %d of %d %s%s\n", name, p.Done, p.Total, p.Unit, prefixIfSet(", at ", p.At))
		}
	}
	return nil
}

func prefixIfSet(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func orDefault(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func formatAge(t, now time.Time) string {
	return now.Sub(t).Round(time.Second).String()
}

func (a *app) reloadCommand() *cobra.Command {
	return a.addFormatFlag(&cobra.Command{
		Use: "reload", Short: "Make the running agent reload its configuration", Args: cobra.NoArgs,
		Long: `The agent applies the whole configuration, or rejects it as a whole and continues with
the old one. Sources are added, changed and removed, and replaced plugin binaries
started, without touching the others.`,
		Example: "  bursar-agent reload",
		RunE: func(c *cobra.Command, _ []string) error {
			client := a.newClient()
			defer client.Close()
			r, err := client.Reload(c.Context())
			if errors.Is(err, control.ErrNotRunning) {
				return err
			}
			if err != nil {
				return fmt.Errorf("the configuration is refused, the old one stays:\n%w", err)
			}
			if a.format == "json" {
				return printJSON(a.Out, r)
			}
			return a.printReloaded(r)
		},
	})
}

func (a *app) printReloaded(r control.Reloaded) error {
	if r.Warnings != "" {
		fmt.Fprintln(a.Err, r.Warnings)
	}
	said := false
	for _, p := range []struct {
		what  string
		names []string
	}{{"added", r.Added}, {"changed", r.Changed}, {"removed", r.Removed}, {"takes effect at the next start only", r.Restart}} {
		if len(p.names) > 0 {
			said = true
			fmt.Fprintf(a.Out, "%s: %s\n", p.what, strings.Join(p.names, ", "))
		}
	}
	if !said {
		fmt.Fprintln(a.Out, "Nothing has changed.")
	}
	if len(r.Configuring) > 0 {
		fmt.Fprintf(a.Out, "still being configured: %s\nThe plugin has not answered yet; see: bursar-agent status\n", strings.Join(r.Configuring, ", "))
	}
	a.printRecordBlocks(r.RecordBlocks)
	return nil
}

func (a *app) printRecordBlocks(blocks []control.RecordBlock) {
	for _, b := range blocks {
		fmt.Fprintln(a.Out, b)
	}
}

// build is what the program was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return a.addFormatFlag(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  bursar-agent version\n  bursar-agent version -format json",
		RunE: func(*cobra.Command, []string) error {
			if a.format == "json" {
				return printJSON(a.Out, buildInfo(a.Version))
			}
			_, err := fmt.Fprintln(a.Out, a.versionText())
			return err
		},
	})
}

// versionText is the version, for people.
func (a *app) versionText() string {
	b := buildInfo(a.Version)
	return fmt.Sprintf("bursar-agent %s%s (%s, %s)", b.Version, prefixIfSet(" ", b.Revision), b.Go, b.Platform)
}

func buildInfo(version string) build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
