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
      Cores  = "HEPscore23"
      Memory = ""
    }
    # AUDITOR's rule: all of the runs that began in the look-back. With "spread", the
    # default, what was used in it.
    credit   = "start"
    mode     = "full_spread"
    priority = { min = 0, max = 1024 }

    group "atlas" {
      params = ["part_atlas"]
    }
  }
  # tls_config: {use_tls: false}: the action asks its own cluster
}
# priority-least.yml | priority where nothing was used | 0 for each group | min for each group
# priority-least.yml | commands | all of them, each time, one failure ends the round | only where the priority is another; each group for itself
