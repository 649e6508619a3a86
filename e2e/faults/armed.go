//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Class is the class of an action's effects.
type Class string

// The classes, and that of actions that find out whether an effect has happened.
const (
	Set        Class = "set"
	Keyed      Class = "keyed"
	AtMostOnce Class = "at-most-once"
	Probed     Class = "at-most-once, probed"
)

// isOnce reports whether no effect may happen twice.
func (c Class) isOnce() bool { return c == AtMostOnce || c == Probed }

// Armed is an action with the fake target of its effects.
type Armed struct {
	Type, Label string
	Class       Class
	// Block is what stands in its action block.
	Block string
	// Target counts the effects; nil: Judge finds them by itself.
	Target *Target
	// Nameless says that the lines of the target do not tell of which effect they are.
	Nameless bool
	// Rejects says that an effect that surely did not happen is rejected, and that a later plan
	// has it again.
	Rejects bool
	// LooksAgain says that a run looks at all again that one before it could not see, so that
	// one may be partial.
	LooksAgain bool
	// Old are the records beside those of the schedulers' jobs.
	Old *oldRecords
	// Judge looks at what is special of the action when nothing changes any more: what
	// is at the receiver, and the runs. It is asked again while it says ErrNotYet.
	Judge func(node *Member, truth Truth, runs []Run) error
}

// String is TYPE/LABEL.
func (a *Armed) String() string { return a.Type + "/" + a.Label }

// kind is a plugin that counts.
type kind struct {
	name  string
	class Class
}

func actionKinds() []kind {
	return []kind{{"countset", Set}, {"countkeyed", Keyed}, {"countonce", AtMostOnce}, {"countprobe", Probed}}
}

// buildTargets builds the programs of the fake targets.
func buildTargets(s *Site) (dir string, err error) {
	dir = filepath.Join(s.Bin, "faults", "plugins")
	program := filepath.Join(dir, "counting")
	build := exec.Command("go", "build", "-o", program, "./testdata/counting")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	binary, err := os.ReadFile(program)
	for _, k := range actionKinds() {
		name := filepath.Join(dir, "bursar-action-"+k.name)
		err = errors.Join(err, os.WriteFile(name+".new", binary, 0o755), os.Rename(name+".new", name))
	}
	return dir, err
}

// Arm returns all actions that there are, each with its target, and what the files
// of the aggregators have of them.
func Arm(s *Site, read APEL, serve MailServer) (armed []*Armed, text string, err error) {
	plugins, err := buildTargets(s)
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(s.Dir, "targets")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, "", err
	}
	target := func(name string) *Target { return &Target{path: filepath.Join(dir, name)} }
	for _, k := range actionKinds() {
		a := &Armed{Type: k.name, Label: "a", Class: k.class, Target: target(k.name)}
		a.Block = fmt.Sprintf("target = %q\n gate = %q", a.Target.path, a.Target.gatePath())
		a.Judge = a.judgeCount
		armed = append(armed, a)
		text += fmt.Sprintf("plugin \"action\" %q { path = %q }\n", k.name, filepath.Join(plugins, "bursar-action-"+k.name))
	}
	program := filepath.Join(plugins, "counting")
	plain := &Armed{Type: "exec", Label: "plain", Class: AtMostOnce, Target: target("plain")}
	plain.Block = fmt.Sprintf("command = [%q, \"take\", %q, %q]", program, plain.Target.path, plain.Target.gatePath())
	feed := &Armed{Type: "exec", Label: "feed", Class: AtMostOnce, Target: target("feed")}
	feed.Block = fmt.Sprintf("command = [%q, \"take\", %q, %q]\n input = \"changes\"\n batch = 300", program, feed.Target.path, feed.Target.gatePath())
	feed.Judge = feed.judgeFed
	ssm := &spool{filepath.Join(dir, "outgoing"), read}
	apel := &Armed{Type: "apel", Label: "egi", Class: Keyed, Judge: ssm.judgeMessages, Block: ssm.configBlock(s.Agents[0].Jobs.now)}
	used := filepath.Join(dir, "utilization")
	if err := os.Mkdir(used, 0o755); err != nil {
		return nil, "", err
	}
	www := filepath.Join(dir, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		return nil, "", err
	}
	files := filepath.Join(dir, "archive")
	if err := os.Mkdir(files, 0o755); err != nil {
		return nil, "", err
	}
	archive, old := archiveAction(files)
	energy, block := energyAction(s, used, target("energy"), serve)
	text += block
	armed = append(armed, archive, energy, plain, feed, apel, webhookAction(s, target("webhook")), reportAction(s, target("report"), serve), webSite(www), alertAction(s, target("alert"), serve), priorityAction(program, target("priority")))
	for _, a := range armed {
		a.Old = old
		text += fmt.Sprintf("action %q %q {\n schedule = \"1s\"\n config {\n %s\n }\n}\n", a.Type, a.Label, a.Block)
	}
	return armed, text, os.Mkdir(ssm.dir, 0o755)
}

// dayOfLastMonth is the tenth day of the last month: jobs that APEL is told begin there.
func dayOfLastMonth() record.Time {
	now := time.Now().UTC()
	return record.FromStd(time.Date(now.Year(), now.Month()-1, 10, 0, 0, 0, 0, time.UTC))
}
