# What is done with the totals: actions. The whole cluster has them; the node that
# leads carries them out. Plugins and programs must be on all nodes.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
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
