package host

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
		if at, why := compiled.Difference(strings.Split(c.arguments, "|")); (at < 0) != c.allowed {
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

func FuzzAnAllowedArgumentIsNoOptionNoPathAndNoList(f *testing.F) {
	c, err := Compile([]string{"/bin/x", "a=*", "..."})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a=b", "c")
	f.Add("a=-", "--c")
	f.Add("a=b\n", "c/d")
	f.Fuzz(func(t *testing.T, one, two string) {
		if at, _ := c.Difference([]string{"/bin/x", one, two}); at >= 0 {
			return
		}
		for _, s := range []string{strings.TrimPrefix(one, "a="), two} {
			if s == "" || len(s) > 64 || s[0] == '-' || strings.ContainsAny(s, " \t\r\n\x00/\\,;:=$`'\"|&<>(){}[]*?!#~%^") {
				t.Errorf("%q is allowed", s)
			}
		}
	})
}
