aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
}

action "priority" "auditor" {
  schedule = "1h"
  # The programs run on the node that leads, or, with the agent's leave, on a head node:
  # run_on = agent.head1

  config {
    components = {
      NumCPUs = "HEPSPEC"
    }
    lookback = "14d"
    # AUDITOR's rule: all of the runs that began in the look-back. With "spread", the
    # default, what was used in it.
    credit   = "start"
    mode     = "scaled_by_sum"
    priority = { min = 1, max = 65335 }
    # left out, since there is no {resource} (bursar actions history shows the usage):
    # /usr/bin/bash -c "/usr/bin/echo \"$(date --rfc-3339=sec --utc) | {resource} |
    # {priority}\" >> /var/lib/auditor-priority-plugin/{group}.txt"
    commands = [
      ["/usr/bin/scontrol", "update", "PartitionName={1}", "PriorityJobFactor={priority}"],
      ["/usr/local/bin/note", "a priority", "{group}"],
    ]

    group "group1" {
      params = ["part1"]
    }

    group "group2" {
      params = ["part2"]
    }

    group "group3" {
      params = ["part3"]
    }
  }
  # auditor: {addr: "auditor.example.org", port: 8000}: the action asks its own cluster
  # timeout: 30: of a question to AUDITOR; that of a program is timeout in config
  # log_level: info: see log { level } in the block aggregator
  # prometheus: {enable: true, addr: "0.0.0.0", port: 9000, metrics: [ResourceUsage,
  # Priority]}: the leader's /metrics has bursar_action_priority_resource_usage and
  # bursar_action_priority_priority
  # tls_config: {use_tls: false}: the action asks its own cluster
}
# priority.yml | commands | /usr/bin/bash -c "/usr/bin/echo \"$(date --rfc-3339=sec --utc) | {resource} | {priority}\" >> /var/lib/auditor-priority-plugin/{group}.txt" | left out: there is no {resource}
# priority.yml | priority where nothing was used | 0 for each group | min for each group
# priority.yml | commands | all of them, each time, one failure ends the round | only where the priority is another; each group for itself
