# An aggregator that sets the priorities of Slurm's partitions: a group that has used
# more gets more, so that pledges are filled as they are used.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/agg1.pem"
    key  = "/etc/bursar/tls/agg1.key"
  }
}

agent "nemo-head1" { address = "head1.nemo.example.org:7070" }

action "priority" "nemo" {
  schedule = "@hourly"
  run_on   = agent.nemo-head1 # which has to allow it; default: the node that leads
  config {
    # Cores are weighted with their score; records without it count with 1.
    components = { Cores = "HEPscore23" }
    lookback   = "14d"
    mode       = "scaled_by_sum" # or full_spread
    priority   = { min = 1, max = 65335 }

    group "atlas" { params = ["part_atlas"] }
    group "belle" { params = ["part_belle"] }
    group "cms" { params = ["part_cms"] }

    # These two are the default. There is no shell; {1} is the group's first param.
    command = ["/usr/bin/scontrol", "update", "PartitionName={1}", "PriorityJobFactor={priority}"]
    read {
      command = ["/usr/bin/scontrol", "show", "partition", "{1}"]
      pattern = "PriorityJobFactor=([0-9]+)"
    }
  }
}

# Shares of accounts, by what VOs have used of cores and memory together, by AUDITOR's
# rule. What cannot be read back is set when it changes, and once a day.
action "priority" "accounts" {
  schedule = "@daily"
  config {
    components = { Cores = "", Memory = "" }
    lookback   = "30d"
    credit     = "start"
    group_meta = "voms"
    priority   = { min = 10, max = 1000 }

    group "/atlas" { params = ["atlas", "atlas-prod"] }
    group "/cms" { params = ["cms", "cms-prod"] }

    commands = [
      ["/usr/bin/sacctmgr", "-i", "modify", "account", "{1}", "set", "fairshare={priority}"],
      ["/usr/bin/sacctmgr", "-i", "modify", "account", "{2}", "set", "fairshare={priority}"],
    ]
  }
}
