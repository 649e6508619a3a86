# The jobs of a Slurm, there seconds after they end by what epilogs tell, and all of
# them by what slurmdbd has. Both sources have the same label, so they give a run the
# same id: it is one record.

agent {
  name     = "nemo-head1"
  data_dir = "/var/lib/bursar-agent"
}

# What slurmdbd has: running jobs, the history, capacity and queues too. With epilogs
# it need not be asked each minute.
source "slurm" "nemo" {
  interval = "10m"
}

# What bursar-epilog tells. `source "slurm-epilog" "nemo" {}` alone is right where
# slurmctld runs on this machine and has EpilogSlurmctld=/usr/bin/bursar-epilog.
source "slurm-epilog" "nemo" {
  config {
    socket       = "/run/bursar-agent/epilog.sock"
    socket_users = ["root", "slurm"]

    # For nodes with Epilog=/usr/bin/bursar-epilog.
    listen         = "0.0.0.0:7071"
    listen_clients = ["bursar-epilog"]
    tls {
      ca   = "/etc/bursar/tls/ca.pem"
      cert = "/etc/bursar/tls/agent.pem"
      key  = "/etc/bursar/tls/agent.key"
    }

    delay = "5s" # before sacct is asked
    wait  = "1h" # before an epilog is believed without slurmdbd
    keep  = "3d" # to look again
  }
}
