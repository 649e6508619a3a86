package programs

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/host"
)

func TestARefusalSaysWhatToWrite(t *testing.T) {
	c, err := host.Compile([]string{"/usr/bin/scontrol", "update", "PartitionName=*"})
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{"priority/nemo": {Commands: []*host.Command{c}, Environment: []string{"SLURM_CONF"}, Place: "/etc/bursar/agent.hcl:12"}}
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
		err := rules.permitProgram(r.action, strings.Split(r.arguments, "|"), env, strings.HasSuffix(r.variable, "IN"), "agent.hcl")
		if (err == nil) != (r.want == "") || err != nil && !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v", r.arguments, err)
		}
	}
}
