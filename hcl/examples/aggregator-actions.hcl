# What is done with the totals: actions. The whole cluster has them; the node that
# leads carries them out. Plugins must be on all nodes, and programs too but for those of
# run_on.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"

  # Agents are talked to with a certificate only.
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/agg1.pem"
    key  = "/etc/bursar/tls/agg1.key"
  }
}

# Where a plugin is, and what it gets; without this block it is looked for in
# /usr/libexec/bursar/plugins. Each node has its own.
plugin "action" "exec" {
  env = { LANG = "C.UTF-8" }
}

# Each month, a program gets what every group has used in the month before.
# `bursar actions plan exec/invoices -v` shows its input and runs nothing.
action "exec" "invoices" {
  schedule = "30 6 1 * *"    # or @monthly, 15m, @change 5m, @manual
  zone     = "Europe/Berlin" # of the schedule
  config {
    command = ["/usr/local/bin/invoice", "--format", "pdf"]
    input   = "usage"
    timeout = "10m"
    usage {
      window  = "last-month"
      by      = ["group_id"]
      measure = ["Cores"]
      unit    = "hour"
    }
  }
}

# When records have changed, at most every five minutes, a program gets them.
action "exec" "mirror" {
  schedule = "@change 5m"
  config {
    command = ["/usr/local/bin/mirror"]
    input   = "changes"
    batch   = 1000
  }
}

# A program that only a head node has is run by the agent there, if its agent.hcl has
# a block allow_action for it: see agent-actions.hcl. The plugin stays on the leader.
action "exec" "quota" {
  schedule = "@daily"
  run_on   = agent.nemo-head1
  config {
    command = ["/usr/local/sbin/set-quota", "--cluster=nemo"]
    input   = "usage"
    usage {
      window  = "this-month"
      by      = ["group_id"]
      measure = ["Cores"]
    }
  }
}

agent "nemo-head1" { address = "head1.nemo.example.org:7070" }
