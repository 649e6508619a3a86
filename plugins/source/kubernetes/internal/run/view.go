package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/proto/text"
)

// View is a run as it is told.
type View struct {
	*Entry
	Container string // "" for the pod as a whole
	Kind      string // of the container
	Run
	First bool // of its container, as far as is known
	Last  bool // of its container: more than its end may change
	at    *Run
}

// Views are the runs of all containers, in the order of their names and starts, or the
// pod as one run.
func (e *Entry) Views(pods bool) []View {
	if pods {
		return e.podAsRun()
	}
	var out []View
	for _, name := range slices.Sorted(maps.Keys(e.Containers)) {
		_, kind := e.Find(name)
		runs := e.Containers[name].Runs
		for i := range runs {
			v := View{Entry: e, Container: name, Kind: kind, Run: runs[i], First: i == 0, Last: i == len(runs)-1, at: &runs[i]}
			if v.Stop.IsZero() {
				v.estimateEnd()
			}
			out = append(out, v)
		}
	}
	return out
}

// podAsRun is the pod as one run: from when its node took it until its last container ended.
func (e *Entry) podAsRun() []View {
	parts := e.Views(false)
	if len(parts) == 0 {
		return nil
	}
	if e.Whole == nil {
		e.Whole = &Run{}
	}
	v := View{Entry: e, Run: *e.Whole, First: true, Last: true, at: e.Whole}
	v.Start, v.Stop, v.Estimated = parts[0].Start, parts[0].Stop, false
	for i := range parts {
		p := &parts[i]
		v.Start = earlier(v.Start, p.Start)
		v.Estimated = v.Estimated || p.Run.Estimated
		v.Stop = later(v.Stop, p.Stop)
		if p.Kind == Main && (v.Exit == nil || p.Exit != nil && v.Exit.Code == 0) {
			v.Exit = p.Exit
		}
	}
	if t := e.Pod.Status.StartTime; t != nil {
		v.Start = earlier(v.Start, t.UTC())
	}
	if !e.Over() {
		v.Stop, v.Estimated, v.Exit = time.Time{}, false, nil
	}
	return []View{v}
}

// estimateEnd gives a run an end that its container's status does not tell, where it has one.
func (v *View) estimateEnd() {
	var stop time.Time
	switch {
	case v.Pod.Status.Over():
		stop = v.overAt()
	case !v.GoneAt.IsZero():
		stop = v.GoneAt
	default:
		return
	}
	v.Stop, v.Estimated = later(stop, v.Start), true
}

// overAt is when the pod was over: as its conditions say, or when it was first known.
func (e *Entry) overAt() time.Time {
	for _, typ := range []string{"DisruptionTarget", "ContainersReady", "Ready"} {
		for _, c := range e.Pod.Status.Conditions {
			if c.Type == typ && (c.Status == "False") == (typ != "DisruptionTarget") && !c.LastTransitionTime.IsZero() {
				return earlier(c.LastTransitionTime.UTC(), e.OverAt)
			}
		}
	}
	return e.OverAt
}

// Open reports whether the run goes on.
func (v *View) Open() bool { return v.Stop.IsZero() }

// toldMark says how much of an ended run has been told: its end, and whether with its usage.
func (v *View) toldMark() string {
	given := v.Usage != nil && v.Usage.Given
	return fmt.Sprintf("%d %t %t", v.Stop.Unix(), v.Estimated, given)
}

// Told reports whether the daemon has the run as the view shows it.
func (v *View) Told() bool { return !v.Open() && v.at.Told == v.toldMark() }

// Tell notes that the daemon has the run as the view shows it, and says whether that is
// news.
func (v *View) Tell() bool {
	if v.Open() {
		return false
	}
	news := v.at.Told != v.toldMark()
	v.at.Told = v.toldMark()
	return news
}

// SetUsage notes what Prometheus says of the run.
func (v *View) SetUsage(u *Usage) { v.at.Usage, v.Usage = u, u }

const maxName = 200

// Name names the run: the pod's uid and the container with the start, in seconds since
// 1970. It is all that Kubernetes says of a run wherever it says it: the number of a
// container's restarts is that of the run while it runs, and one more or the same once it
// waits for the next.
func (v *View) Name() string {
	if v.Container == "" {
		return text.ShortName(v.Pod.Metadata.Namespace+"-"+v.Pod.Metadata.Name+"-"+v.UID(), maxName)
	}
	name := fmt.Sprintf("%s-%s@%d", v.UID(), v.Container, v.Start.Unix())
	if v.Twin > 0 {
		name += fmt.Sprintf(".%d", v.Twin)
	}
	return text.ShortName(name, maxName)
}

// state is how the run went, in one word.
func (v *View) state() string {
	s := &v.Pod.Status
	switch {
	case v.Open():
		return "running"
	case v.Exit != nil && v.Exit.Reason == "OOMKilled":
		return "oom"
	case v.endedByItself() && v.Exit.Code == 0 && v.Exit.Signal == 0:
		return "complete"
	case v.endedByItself():
		return "failed"
	case s.Reason == "Evicted":
		return "evicted"
	case hasDisruption(s, "PreemptionByScheduler"), s.Reason == "Preempting":
		return "preempted"
	case s.Reason == "DeadlineExceeded":
		return "timeout"
	case v.Exit != nil && v.Exit.Code == 0 && v.Exit.Signal == 0:
		return "complete"
	case v.Pod.Metadata.DeletionTimestamp != nil, v.Deleted:
		return "deleted"
	case v.Exit != nil:
		return "failed"
	case !v.GoneAt.IsZero():
		return "forgotten"
	case s.Phase == kube.Succeeded:
		return "complete"
	default:
		return "lost"
	}
}

// endedByItself reports whether the run had ended before what became of its pod: there was a
// later start of the container, or it was an init container that made way for the next.
func (v *View) endedByItself() bool {
	return v.Exit != nil && (!v.Last || v.Kind == Init && v.Exit.Code == 0 && v.Exit.Signal == 0)
}

func hasDisruption(s *kube.PodStatus, reason string) bool {
	return slices.ContainsFunc(s.Conditions, func(c kube.Condition) bool {
		return c.Type == "DisruptionTarget" && c.Status == "True" && c.Reason == reason
	})
}

// Recorded reports whether the daemon has the run with its end, perhaps without what it
// used.
func (v *View) Recorded() bool {
	return !v.Open() && v.at.Told != "" && strings.HasPrefix(v.at.Told, fmt.Sprintf("%d ", v.Stop.Unix()))
}
