package errand

import (
	"strings"
	"testing"
)

func TestOnlyWhatACommandSaysIsAllowed(t *testing.T) {
	for _, c := range []struct {
		command, arguments string // divided by |
		allowed            bool
	}{
		{"/bin/x", "/bin/x", true},
		{"/bin/x", "/bin/y", false},
		{"/bin/x", "/bin/x|a", false},
		{"/bin/x|a", "/bin/x", false},
		{"/bin/x|a b $(c)", "/bin/x|a b $(c)", true},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=atlas", true},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=a.b-c_d@e+1", true},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=", false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=a,b", false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=a b", false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=a\n", false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=../a", false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=ä", false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=" + strings.Repeat("a", 64), true},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=" + strings.Repeat("a", 65), false},
		{"/bin/x|update|Name=*", "/bin/x|update|Name=a|b", false},
		{"/bin/x|*", "/bin/x|-rf", false},
		{"/bin/x|*", "/bin/x|a", true},
		{"/bin/x|*", "/bin/x|", false},
		{"/bin/x|a.c", "/bin/x|abc", false},
		{"/bin/x|*.c", "/bin/x|a.c", true},
		{"/bin/x|*.c", "/bin/x|axc", false},
		{"/bin/x|*=*", "/bin/x|a=b", true},
		{"/bin/x|...", "/bin/x", true},
		{"/bin/x|...", "/bin/x|a|b|c", true},
		{"/bin/x|...", "/bin/x|a|--b", false},
		{"/bin/x|a|...", "/bin/x|a|b", true},
		{"/bin/x|a|...", "/bin/x|b", false},
	} {
		compiled, err := Compile(strings.Split(c.command, "|"))
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
			continue
		}
		if at, why := compiled.difference(strings.Split(c.arguments, "|")); (at < 0) != c.allowed {
			t.Errorf("%s for %s: argument %d: %s", c.command, c.arguments, at, why)
		}
	}
}

func TestWhatWouldAllowAnythingIsNoCommand(t *testing.T) {
	for command, want := range map[string]string{
		"scontrol|update":         "not the absolute path",
		"/usr/../bin/x":           "not the absolute path",
		"":                        "not the absolute path",
		"/bin/*":                  "leaves open which program",
		"/bin/sh|-c|*":            "is a shell",
		"/bin/bash":               "is a shell",
		"/usr/bin/env|*":          "stands behind env",
		"/usr/bin/env|A=*|/bin/x": "stands behind env",
		"/usr/bin/env|bash|-c|x":  "is a shell",
		"/usr/bin/env|A=b|bash":   "is a shell",
		"/usr/bin/env|-S|*":       "stands behind env",
		"/usr/bin/sudo|*":         "stands behind sudo",
		"/usr/bin/sudo|/usr/bin/scontrol|update|*":     "stands behind sudo",
		"/usr/bin/su|-c|*":                             "stands behind su",
		"/usr/bin/nice|...":                            "stands behind nice",
		"/usr/bin/systemd-run|*":                       "stands behind systemd-run",
		"/usr/bin/timeout|5|/usr/bin/nice|-n|*|/bin/x": "stands behind",
		"/opt/x|/usr/bin/sudo|*":                       "stands behind sudo",
		"/usr/bin/find|/|-name|*":                      "stands behind find",
		"/usr/bin/make|a=*":                            "stands behind make",
		"/usr/bin/nice|python3|-":                      "runs any program",
		"/usr/bin/sudo|/bin/sh":                        "is a shell",
		"/usr/bin/nice|bash|*":                         "is a shell",
		"/usr/bin/python3":                             "runs any program",
		"/usr/bin/python3.12|-c":                       "runs any program",
		"/usr/bin/perl|/opt/*":                         "runs any program",
		"/bin/x|...|a":                                 "can only be the last",
		"/bin/x|a\x00":                                 "zero byte",
	} {
		if _, err := Compile(strings.Split(command, "|")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	for _, command := range []string{
		"/usr/bin/python3|/opt/set.py|--group=*", "/bin/sh|/opt/set.sh|*", "/usr/bin/nice|-n|5|/usr/bin/scontrol|reconfigure",
		"/usr/bin/env|SLURM_CONF=/x|/usr/bin/scontrol|update|PartitionName=*", "/usr/bin/scontrol|update|time|*", "/usr/bin/sudo|/usr/bin/scontrol|reconfigure",
	} {
		if _, err := Compile(strings.Split(command, "|")); err != nil {
			t.Error(err)
		}
	}
	if _, err := Compile(nil); err == nil {
		t.Error("nothing is no command")
	}
}

func TestARefusalSaysWhatToWrite(t *testing.T) {
	c, err := Compile([]string{"/usr/bin/scontrol", "update", "PartitionName=*"})
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{"priority/nemo": {Commands: []*Command{c}, Environment: []string{"SLURM_CONF"}, Place: "/etc/bursar/agent.hcl:12"}}
	for _, r := range []struct {
		action, arguments, variable string
		want                        string
	}{
		{"priority/nemo", "/usr/bin/scontrol|update|PartitionName=atlas", "SLURM_CONF", ""},
		{"priority/nemo", "/usr/bin/scontrol|update|PartitionName=atlas", "BURSAR_KEY", ""},
		{"priority/nemo", "/usr/bin/scontrol|update|PartitionName=atlas", "LD_PRELOAD", `at /etc/bursar/agent.hcl:12 does not allow it to set the variable "LD_PRELOAD"; if it is to, add environment = ["LD_PRELOAD"] there`},
		{"priority/nemo", "/usr/bin/scontrol|update|PartitionName=a b", "", `at /etc/bursar/agent.hcl:12 does not allow ["/usr/bin/scontrol", "update", "PartitionName=a b"]: nearest is command 1 of it, where "PartitionName=a b" does not match "PartitionName=*"`},
		{"priority/nemo", "/usr/bin/scontrol|update", "", `"PartitionName=*" is missing`},
		{"priority/nemo", "/usr/bin/scontrol|update|PartitionName=atlas", "STDIN", `does not allow standard input: "/usr/bin/scontrol" gets some; if the program may read what the action sends, add stdin = true there`},
		{"exec/y", "/bin/x", "STDIN", "commands = [[\"/bin/x\"]]\n  stdin    = true\n}"},
		{"exec/x", "/bin/x|${a}", "", "add to agent.hcl, with * for what changes in an argument, and reload the agent:\nallow_action \"exec\" \"x\" {\n  commands = [[\"/bin/x\", \"$${a}\"]]\n}"},
	} {
		env := map[string]string{}
		if r.variable != "" && r.variable != "STDIN" {
			env[r.variable] = "x"
		}
		err := rules.permit(r.action, strings.Split(r.arguments, "|"), env, strings.HasSuffix(r.variable, "IN"), "agent.hcl")
		if (err == nil) != (r.want == "") || err != nil && !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v", r.arguments, err)
		}
	}
}

func FuzzAnAllowedArgumentIsNoOptionNoPathAndNoList(f *testing.F) {
	c, err := Compile([]string{"/bin/x", "a=*", "..."})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a=b", "c")
	f.Add("a=-", "--c")
	f.Add("a=b\n", "c/d")
	f.Fuzz(func(t *testing.T, one, two string) {
		if at, _ := c.difference([]string{"/bin/x", one, two}); at >= 0 {
			return
		}
		for _, s := range []string{strings.TrimPrefix(one, "a="), two} {
			if s == "" || len(s) > 64 || s[0] == '-' || strings.ContainsAny(s, " \t\r\n\x00/\\,;:=$`'\"|&<>(){}[]*?!#~%^") {
				t.Errorf("%q is allowed", s)
			}
		}
	})
}
