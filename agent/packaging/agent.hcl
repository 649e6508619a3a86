# bursar-agent: what every job of this machine's scheduler used.
#
#   bursar-agent -check                    says what is wrong in here, with its line
#   bursar-agent doctor                    looks whether this machine has what is needed
#   systemctl enable --now bursar-agent    starts it; systemctl reload after a change
#
# All settings: man bursar-agent.hcl, /usr/share/doc/bursar-agent/examples.

agent {
  # The name in the agent's certificate; aggregators know it by this name.
  name = "agent"

  # Where aggregators pull. Without certificates nobody can, and records wait in
  # the buffer. Make them where the authority is kept, and bring them here:
  #
  #   bursar tls cert create -role agent -name agent -host head1.example.org
  #   install -o root -g bursar-agent -m 0640 agent.key /etc/bursar/tls/
  #   install -o root -g bursar-agent -m 0644 ca.pem agent.pem /etc/bursar/tls/
  #
  # listen = "0.0.0.0:7070"
  # tls {
  #   ca   = "/etc/bursar/tls/ca.pem"
  #   cert = "/etc/bursar/tls/agent.pem"
  #   key  = "/etc/bursar/tls/agent.key"
  # }

  # How much waits for the aggregators, and for how long what they have is kept, so
  # that a lost aggregator can be filled again.
  #
  # buffer {
  #   max_size = "8GiB"
  #   retain   = "30d"
  # }

  # For Prometheus.
  #
  # metrics { listen = "127.0.0.1:9109" }
}

# Slurm, where `sacct` works on this machine (package bursar-source-slurm). The label
# begins the ids of the records, so it should be the cluster's name: `sacctmgr -n show
# cluster format=cluster` prints it. This line alone gives right records; a record
# block says what else should be in them, and `bursar-agent preview` shows it.
#
# source "slurm" "mycluster" {}

# Any scheduler that has no plugin, from a file with a JSON object a line (package
# bursar-source-replay).
#
# source "replay" "mylab" {
#   config { path = "/var/log/lab/jobs.ndjson" }
# }
