# An agent that runs programs for actions of the aggregator whose run_on names it.

agent {
  name     = "nemo-head1"
  data_dir = "/var/lib/bursar-agent"
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/nemo-head1.pem"
    key  = "/etc/bursar/tls/nemo-head1.key"
  }
}

source "slurm" "nemo" {}

# What action "priority" "nemo" may run here, as the agent's user. Nothing else is run,
# and without such a block nothing at all. A * stands for a value – a letter, digit or
# _, then up to 63 of these and of . @ + - –, never for an option or a path. There is
# no shell.
allow_action "priority" "nemo" {
  commands = [
    ["/usr/bin/scontrol", "update", "PartitionName=*", "PriorityJobFactor=*"],
    ["/usr/bin/scontrol", "show", "partition", "*", "--oneliner"],
  ]
}

# "..." as the last element stands for any further values. Variables that an action
# sets are refused but for those that begin with BURSAR_ and those named here. What an
# action sends on standard input is refused without stdin = true. Only root and the
# agent's user may be able to write to the program and to the folders above it.
allow_action "exec" "quota" {
  commands    = [["/usr/local/sbin/set-quota", "--cluster=nemo", "..."]]
  environment = ["QUOTA_POOL"]
  stdin       = true
}
