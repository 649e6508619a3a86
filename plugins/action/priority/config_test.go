package main

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestWhatIsWrongWithTheConfigurationIsTold(t *testing.T) {
	one := groupOf("g", "p")
	command := func(words ...string) sdk.Node { return list("command", words...) }
	for _, x := range []struct {
		want  string
		nodes []sdk.Node
	}{
		{`components must be set`, []sdk.Node{one}},
		{"it is empty; expected a component", []sdk.Node{one, scored(map[string]string{})}},
		{"there are 0 blocks", []sdk.Node{cores()}},
		{"already defined", []sdk.Node{cores(), one, groupOf("g", "q")}},
		{"wrong number of labels on \"group\"", []sdk.Node{cores(), block("group", nil)}},
		{"not more than nothing", []sdk.Node{cores(), one, textNode("lookback", "0s")}},
		{"min, 5, is more than max, 4", []sdk.Node{cores(), one, limits(5, 4)}},
		{"of whole numbers that are not less than 0", []sdk.Node{cores(), one, limits(-1, 4)}},
		{"expected a map, not a string", []sdk.Node{cores(), one, textNode("priority", "5")}},
		{`did you mean "full_spread"?`, []sdk.Node{cores(), one, textNode("mode", "fullspread")}},
		{`did you mean "lookback"?`, []sdk.Node{cores(), one, textNode("look_back", "1d")}},
		{"only runs that have ended count", []sdk.Node{cores(), one, textNode("credit", "start"), attribute("running", sdk.Bool(true))}},
		{"must be between 1s and 2m", []sdk.Node{cores(), one, textNode("timeout", "1h")}},
		{"may not reach the argument", []sdk.Node{cores(), groupOf("g", "-p")}},
		{"has 0 params, and the command", []sdk.Node{cores(), groupOf("g")}},
		{"refers to {2}", []sdk.Node{cores(), one, command("/x", "{2}")}},
		{"{group} in the command", []sdk.Node{cores(), groupOf("a b", "p"), command("/x", "{group}", "{priority}")}},
		{"would run the same command as group \"g\"", []sdk.Node{cores(), one, groupOf("h", "p")}},
		{"is not the absolute path", []sdk.Node{cores(), one, command("scontrol")}},
		{"empty command; the first", []sdk.Node{cores(), one, command()}},
		{"leaves open which program", []sdk.Node{cores(), one, command("/bin/{1}")}},
		{"unknown placeholder {prio}", []sdk.Node{cores(), one, command("/x", "a{prio}")}},
		{"unknown placeholder {0}", []sdk.Node{cores(), one, command("/x", "{0}")}},
		{"unknown placeholder {01}", []sdk.Node{cores(), one, command("/x", "{01}")}},
		{`"/bin/sh" is a shell`, []sdk.Node{cores(), one, command("/bin/sh", "-c", "x {1}")}},
		{"there is command too", []sdk.Node{cores(), one, command("/x", "{1}"), attribute("commands", sdk.List(sdk.Strings("/y")))}},
		{"expected a list of commands", []sdk.Node{cores(), one, list("commands")}},
		{"is not the absolute path", []sdk.Node{cores(), one, attribute("commands", sdk.List(sdk.Strings("/y", "{1}"), sdk.Strings("z")))}},
		{"unknown placeholder {priority}", []sdk.Node{cores(), one, block("read", nil, command("/x", "{priority}"))}},
		{`command must be set`, []sdk.Node{cores(), one, block("read", nil)}},
		{"it has 0 groups in parentheses", []sdk.Node{cores(), one, block("read", nil, command("/x"), textNode("pattern", "x"))}},
		{"missing closing )", []sdk.Node{cores(), one, block("read", nil, command("/x"), textNode("pattern", "("))}},
		{"refers to {3}", []sdk.Node{cores(), one, block("read", nil, command("/x", "{3}"))}},
	} {
		if _, err := configured(x.nodes...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}

func TestTheReadmeHasTheTableOfTheSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestAPlaceholderNeverReachesAProgramText(t *testing.T) {
	for _, refused := range []string{
		"/bin/sh -c {1}", "/bin/bash -lc x{1}", "/usr/bin/env bash -c {1}", "/usr/bin/sudo -u slurm /bin/dash -c {group}",
		"/usr/bin/python3 -c {1}", "/usr/bin/python3.11 -Ic {1}", "/usr/bin/perl -we {1}", "/usr/bin/env -S{1}", "/usr/bin/env --split-string={1}",
		"/usr/bin/node --eval {1}", "/bin/su slurm -c {1}", "/usr/bin/timeout 5 zsh -c {priority}", "/bin/busybox sh -c {1}",
		"/usr/bin/sudo {1}", "/usr/bin/nice {group}", "/usr/bin/systemd-run /usr/bin/scontrol {1}", "/usr/bin/find / -name {1}", "/usr/bin/expect -c {1}",
	} {
		if command(strings.Fields(refused)).checkCommand(priorityHolder, groupHolder) == nil {
			t.Errorf("%s is taken", refused)
		}
	}
	for _, taken := range []string{
		"/usr/bin/scontrol update PartitionName={1} PriorityJobFactor={priority}", "/bin/sh -c true", "/bin/sh /opt/set {1} {priority}",
		"/usr/bin/env SLURM_CONF=/x /usr/bin/scontrol {group}", "/usr/bin/sacctmgr -i modify account {1} set fairshare={priority}", "/opt/x --c {1}",
	} {
		if err := command(strings.Fields(taken)).checkCommand(priorityHolder, groupHolder); err != nil {
			t.Errorf("%s: %v", taken, err)
		}
	}
}

func TestOnlyPlainWordsReachAnArgument(t *testing.T) {
	for _, s := range []string{"", "-x", ".x", "@x", "+x", "a b", "a;b", "a/b", "a=b", "ä", "a\nb", "$x", "a{1}", strings.Repeat("a", 65)} {
		if checkWord(s) == nil {
			t.Errorf("%q is taken", s)
		}
	}
	for _, s := range []string{"a", "_", "9", "part_atlas", "a.b@c+d-e", strings.Repeat("a", 64)} {
		if err := checkWord(s); err != nil {
			t.Error(err)
		}
	}
}

func TestAGroupMayHaveCommandsOfItsOwn(t *testing.T) {
	a := must(t, cores(), groupOf("g", "p"), block("group", []string{"h"}, list("params", "q"), list("command", "/bin/own", "{priority}")),
		block("group", []string{"i"}, list("params", "r"), block("read", nil, list("command", "/bin/see", "{group}"))))
	g := a.config.groups
	if g[0].commands[0][0] != "/usr/bin/scontrol" || g[0].read == nil || g[0].read.command[1] != "show" {
		t.Errorf("%+v", g[0])
	}
	if g[1].commands[0][0] != "/bin/own" || g[1].read != nil {
		t.Errorf("%+v", g[1])
	}
	if g[2].commands[0][0] != "/usr/bin/scontrol" || g[2].read.command[0] != "/bin/see" || g[2].read.pattern != anyPattern {
		t.Errorf("%+v", g[2])
	}
}

func FuzzCommand(f *testing.F) {
	f.Add("/usr/bin/scontrol", "PartitionName={1}", "PriorityJobFactor={priority}", "atlas")
	f.Add("/bin/sh", "-c", "{1}", "x")
	f.Fuzz(func(t *testing.T, program, one, two, value string) {
		c := command{program, one, two}
		if c.checkCommand(priorityHolder, groupHolder) != nil || checkWord(value) != nil {
			return
		}
		out := c.fillPlaceholders(map[string]string{"{1}": value, groupHolder: value, priorityHolder: "5"})
		if len(out) != 3 || out[0] != program {
			t.Errorf("%q became %q", c, out)
		}
		for i, arg := range out {
			if c[i] != "" && (arg == "" || arg[0] == '-' && c[i][0] != '-') {
				t.Errorf("%q became %q", c[i], arg)
			}
		}
	})
}
