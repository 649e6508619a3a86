package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// clusterStatus is an answer of GET /v1/status.
type clusterStatus v1.Status

func (p *Program) statusCommand() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "status", Short: "Show in ten lines whether the cluster is healthy, and if not what to do first",
		Long: `Show in ten lines whether the cluster is healthy, and if not what to do first.

Any node can answer; a node that cannot reach the others says so. Exit code 0
means healthy, 2 that something needs attention, and 1 that the health is unknown,
because the node does not answer.`,
		Example: "  bursar status\n  bursar status -address https://agg1.example.org:8443 -ca-cert ca.pem -client-cert alice.pem -client-key alice.key",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Status, error) { return api.Status(ctx, nil) }, func(answer v1.Status, _ format, c *clock) page {
		s := clusterStatus(answer)
		if s.Verdict == nil {
			s.Verdict = &v1.Verdict{}
		}
		return p.showStatus(&s, c)
	})
}

func (p *Program) showStatus(s *clusterStatus, c *clock) page {
	out := page{exact: newTable("WHAT", "VALUE")}
	for _, l := range append([]line{{"state", s.State}}, s.statusLines(p.Now(), c)...) {
		out.exact.addRow(l.what, l.value)
	}
	switch s.State {
	case "healthy":
	case "degraded", "failing":
		out.found = finding{errors.New("")} // it has been said
	default:
		out.found = errors.New("health unknown: this aggregator gives no verdict")
	}
	var b strings.Builder
	b.WriteString(p.highlightLine(s, wrapText(s.headline(p.Now()), p.Width, 0)) + "\n")
	for _, l := range s.statusLines(p.Now(), c) {
		text := fmt.Sprintf("%-*s%s", labelWidth, l.what, printable(l.value))
		switch {
		case l.what == labelDo:
			text = wrapText(text, p.Width, labelWidth)
		case p.Width > 0:
			text = cutToWidth(text, p.Width)
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	out.text = b.String()
	return out
}

// highlightLine colours the headline: green when healthy, red when something is
// broken.
func (p *Program) highlightLine(s *clusterStatus, text string) string {
	code, ok := map[string]string{"healthy": "32", "degraded": "33", "failing": "31"}[s.State]
	if !p.Color || !ok {
		return text
	}
	return "\x1b[1;" + code + "m" + text + "\x1b[0m"
}

// line is one of the ten.
type line struct{ what, value string }

const (
	labelWidth = 12
	labelDo    = "do first"
	// more is how many findings after the first have a line.
	more = 2
)

// openFindings are those that ask for something to be done.
func (s *clusterStatus) openFindings() (list []v1.Finding) {
	for _, f := range s.Findings {
		if f.Severity != "notice" {
			list = append(list, f)
		}
	}
	return list
}

// headline is the first line.
func (s *clusterStatus) headline(now time.Time) string {
	list := s.openFindings()
	switch {
	case s.State == "healthy":
		return "Healthy."
	case len(list) == 0:
		return "Health unknown."
	case len(list) == 1:
		return "Needs attention: " + printable(findingText(&list[0], now)) + "."
	}
	return fmt.Sprintf("%d problems; most urgent: %s.", len(list), printable(findingText(&list[0], now)))
}

// findingText is a finding with how long it has been so.
func findingText(f *v1.Finding, now time.Time) string {
	if d := now.Sub(f.Since.Time); !f.Since.IsZero() && d >= time.Minute {
		return f.What + ", for " + view.Span(d)
	}
	return f.What
}

// statusLines are those below the headline: what to do, and the facts.
func (s *clusterStatus) statusLines(now time.Time, c *clock) (out []line) {
	if list := s.openFindings(); len(list) > 0 {
		out = append(out, line{labelDo, orDash(list[0].Do)})
		rest := list[1:]
		for i := range min(more, len(rest)) {
			text := findingText(&rest[i], now)
			if left := len(rest) - more; i == more-1 && left > 0 {
				text += fmt.Sprintf(" (and %d more: -format json)", left)
			}
			out = append(out, line{"then", text})
		}
	}
	out = append(out, line{"cluster", s.clusterLine()}, line{"records", s.recordsLine(c)}, line{"agents", s.agentsLine()},
		line{"issues", s.issuesLine()})
	if r := s.Retention; r != nil && r.NamesMonths != nil {
		out = append(out, line{"names", view.RetentionText(r, c.zone.String())})
	}
	return append(out, line{"disks", s.disksLine()}, line{"dates", s.datesLine(c)})
}

func (s *clusterStatus) clusterLine() string {
	if len(s.Nodes) == 0 {
		return orDash(s.Cluster) + ", version " + orDash(s.Version)
	}
	heard, leader, lag := 0, "no leader", "lag not known"
	var behind *uint64
	for _, n := range s.Nodes {
		if n.Heard {
			heard++
		}
		if n.Role == "leader" {
			leader = n.Name + " leads"
		}
		if n.Behind != nil && (behind == nil || *behind < *n.Behind) {
			behind = n.Behind
			lag = fmt.Sprintf("at most %d entries behind", *behind)
		}
	}
	return fmt.Sprintf("%s: %d of %d nodes reachable%s, %s, %s, version %s", orDash(s.Cluster), heard, len(s.Nodes), s.unheardNodes(), leader, lag, orDash(s.Version))
}

// freshSight is how old what is known of a node may be without being said: nodes ask each
// other every two seconds.
const freshSight = 3.0

// unheardNodes says how long ago nodes were heard that are not heard now, or were not lately; "" when
// all were.
func (s *clusterStatus) unheardNodes() string {
	var list []string
	for _, n := range s.Nodes {
		switch {
		case n.Self:
		case n.AgeSeconds == nil:
			list = append(list, n.Name+" never heard")
		case !n.Heard || *n.AgeSeconds > freshSight:
			list = append(list, n.Name+" last heard "+view.Span(secondsOf(*n.AgeSeconds))+" ago")
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

func (s *clusterStatus) recordsLine(c *clock) string {
	var oldest v1.Time
	for _, a := range s.Agents {
		for _, source := range a.Sources {
			if to := source.CompleteTo; !to.IsZero() && (oldest.IsZero() || to.Before(oldest.Time)) {
				oldest = to
			}
		}
	}
	if s.Records == nil || s.Index == nil {
		return notKnown
	}
	text := fmt.Sprintf("%d at index %d", *s.Records, *s.Index)
	switch {
	case s.Confirmed:
	case s.AgeSeconds == nil:
		text += " on this node, not confirmed"
	default:
		text += " on this node, confirmed " + view.Span(secondsOf(*s.AgeSeconds)) + " ago"
	}
	if !oldest.IsZero() {
		text += ", complete to " + c.instantText(oldest)
	}
	return text
}

func (s *clusterStatus) issuesLine() string {
	if s.Quarantined == nil || s.Conflicts == nil || s.WaitingStops == nil {
		return notKnown
	}
	return fmt.Sprintf("%d quarantined, %d conflicts, %d job ends without a record", *s.Quarantined, *s.Conflicts, *s.WaitingStops)
}

func (s *clusterStatus) agentsLine() string {
	agents, reached, unknown, behind := 0, 0, 0, uint64(0)
	for _, a := range s.Agents {
		if a.Import {
			continue
		}
		agents++
		switch {
		case a.Connected == nil && a.Error != "":
			unknown++
		case a.Connected != nil && *a.Connected:
			reached++
		}
		if a.Behind != nil {
			behind += *a.Behind
		}
	}
	switch {
	case agents == 0 && s.Records == nil:
		return notKnown
	case agents == 0:
		return "none"
	case agents == unknown:
		return fmt.Sprintf("%d, which of them answer is not known without a leader", agents)
	}
	return fmt.Sprintf("%d of %d answer, %d frames pending", reached, agents, behind)
}

func (s *clusterStatus) disksLine() string {
	var parts []string
	for _, n := range s.Nodes {
		switch {
		case !n.Heard:
			parts = append(parts, n.Name+" "+notKnown)
		case n.DiskSizeBytes > 0:
			parts = append(parts, fmt.Sprintf("%s %d %% free", n.Name, 100*n.DiskFreeBytes/n.DiskSizeBytes))
		}
	}
	return orDash(strings.Join(parts, ", "))
}

// secondsOf makes a duration of seconds.
func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// notKnown stands for what no one could be asked.
const notKnown = "not known"

// datesLine has the certificate that ends first and the newest backup.
func (s *clusterStatus) datesLine(c *clock) string {
	var first v1.Time
	for _, n := range s.Nodes {
		if to := n.CertificateUntil; !to.IsZero() && (first.IsZero() || to.Before(first.Time)) {
			first = to
		}
	}
	var parts []string
	if !first.IsZero() {
		parts = append(parts, "certificates to "+c.instantText(first))
	}
	if !s.LastSnapshot.IsZero() {
		parts = append(parts, "last snapshot saved "+c.instantText(s.LastSnapshot))
	}
	return orDash(strings.Join(parts, ", "))
}

// wrapText breaks text at blanks into lines of at most width columns; what follows
// the first line is indented. Zero does not break.
func wrapText(text string, width, indent int) string {
	if width == 0 || uniseg.StringWidth(text) <= width {
		return text
	}
	var lines []string
	now := ""
	for word := range strings.SplitSeq(text, " ") {
		if now != "" && uniseg.StringWidth(now)+1+uniseg.StringWidth(word) > width && strings.TrimSpace(now) != "" {
			lines = append(lines, strings.TrimRight(now, " "))
			now = strings.Repeat(" ", indent) + word
			continue
		}
		if now != "" || word == "" {
			now += " "
		}
		now += word
	}
	return strings.Join(append(lines, now), "\n")
}
