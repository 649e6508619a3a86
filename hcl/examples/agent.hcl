# The agent of the cluster "nemo". What is not here has a default.

agent {
  name     = "nemo-head1"
  data_dir = "/var/lib/bursar-agent"
  listen   = "0.0.0.0:7070"

  # Behind a firewall, in place of listen: the TLS listeners of all aggregators, to which the
  # agent connects. Its block there is agent "nemo-head1" { dials_in = true }.
  # dial = ["agg1.example.org:8443", "agg2.example.org:8443", "agg3.example.org:8443"]

  # Aggregators pull by mutual TLS only. `bursar tls cert create -role agent -name nemo-head1 -host head1.nemo.example.org` makes these.
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/nemo-head1.pem"
    key  = "/etc/bursar/tls/nemo-head1.key"
  }

  # Collected records wait here for the aggregators. What they have committed is
  # kept for a while longer, so that a lost aggregator can be filled again.
  buffer {
    max_size = "8GiB"
    retain   = "30d"
  }

  # For Prometheus.
  metrics {
    listen = "127.0.0.1:9109"
  }

  log {
    level  = "info"
    format = "text"
  }
}

# `source "slurm" "nemo" {}` alone gives right records. The label begins the ids of
# the records.
source "slurm" "nemo" {
  interval = "1m"

  # For how long a call of the plugin may make no progress before the plugin is killed
  # and started again. By default 2m; 1h for plugins that do not report progress.
  stall_timeout = "2m"

  config {
    partitions = ["compute", "gpu"]
    states     = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY"]
    earliest   = "2024-01-01T00:00:00Z"
  }

  # What is said here changes that part of the plugin's default mapping, which
  # `bursar-source-slurm -mapping` prints; all else stays. `bursar-agent preview` shows
  # what becomes of the last jobs, and why.
  record {
    id = "${source.label}-${job.id}"
    meta = {
      voms = try(jsondecode(job.Comment).voms, null)
      qos  = null # left out
    }
    component "Cores" { # the amount is the default's
      score "HEPScore23" { value = job.Partition == "gpu" ? 21.5 : 10.0 }
    }
  }
}

# Where a plugin is and what it gets, where that is not the usual. With sha256
# a file with another digest is not started.
plugin "source" "slurm" {
  path = "/usr/libexec/bursar/plugins/bursar-source-slurm"
  env  = { SLURM_CONF = "/etc/slurm/slurm.conf" }
}
