# The jobs of two Slurm clusters. `source "slurm" "nemo" {}` alone is right for a
# cluster whose sacct works on this machine; everything below is optional.

agent {
  name     = "nemo-head1"
  data_dir = "/var/lib/bursar-agent"
}

source "slurm" "nemo" {
  interval = "1m"

  config {
    sacct      = "/usr/bin/sacct"
    partitions = ["compute", "gpu"]
    accounts   = ["physics", "chemistry"]
    states     = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "REQUEUED", "PREEMPTED", "NODE_FAIL"]
    earliest   = "2024-01-01T00:00:00Z"
    running    = true # running jobs are open records

    # How the history is read, and how far back every look goes for what
    # slurmdbd got late.
    window       = "1d"
    overlap      = "1h"
    deep_overlap = "2d"
    timeout      = "5m"

    # What is told beside jobs: what the cluster has, who has jobs in the queue,
    # and who may charge which account. These are the defaults.
    capacity_interval  = "10m"
    census_interval    = "1m"
    directory_interval = "1h"
  }

  record {
    id   = "${source.label}-${job.id}"
    when = job.User != "healthcheck"

    # These keys and components are added to those of the default mapping; null leaves a
    # key out.
    meta = {
      # A comment such as {"voms": "/atlas/Role=pilot", "subject": "/CN=pilot"}
      voms    = try(jsondecode(job.Comment).voms, null)
      subject = try(jsondecode(job.Comment).subject, null)

      gpu_types = try(keys(job.gpus_by_type), null)
    }

    component "Cores" { # the amount is the default's
      score "HEPScore23" { value = job.Partition == "gpu" ? 21.5 : 10.0 }
    }
    component "MaxRSS" {
      amount = job.max_rss_bytes
      when   = job.max_rss_bytes != null
      kind   = "total"
    }
    component "MemoryUsed" { # peak in MB: Jobstats', as by default, else that of the largest step
      amount = coalesce(job.jobstats_memory_mb, try(ceil(job.total_rss_bytes / 1048576), null))
      when   = job.jobstats_memory_mb != null || job.total_rss_bytes != null
    }
    component "Billing" {
      amount = try(job.alloc_tres["billing"], 0)
      kind   = "rate"
    }
    # Slurm's meter is that of the node: on a node that jobs share, each of them gets the
    # energy of all. sacct does not say which jobs were exclusive, so here only jobs that had
    # all CPUs of their nodes have it: 64 a node in the partition compute, where no node is
    # oversubscribed. Write your own partition and CPUs; the energy of all other jobs is
    # modelled, see aggregator-energy.hcl.
    component "Energy" {
      amount = job.energy_joules
      when   = try(job.energy_joules > 0 && job.Partition == "compute" && job.AllocCPUS == 64 * job.node_count, false)
      kind   = "total"
    }
  }
}

# Two clusters of one slurmdbd: job.qualified_id has the cluster's name in it.
source "slurm" "federation" {
  config {
    clusters = ["east", "west"]
    running  = false
  }
  record {
    id = "${source.label}-${job.qualified_id}"
    meta = {
      site_id  = job.cluster
      user_id  = job.user
      group_id = job.group
    }
  }
}
