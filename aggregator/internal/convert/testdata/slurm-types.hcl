agent {
  name     = "head1" # as in its certificate
  data_dir = "/var/lib/bursar-agent"

  # Aggregators pull by mutual TLS. On the machine of the authority:
  #   bursar tls cert create -role agent -name head1 -host head1.example.org
  # tls {
  #   ca   = "/etc/bursar/tls/ca.pem"
  #   cert = "/etc/bursar/tls/head1.pem"
  #   key  = "/etc/bursar/tls/head1.key"
  # }
}

source "slurm" "types" {

  config {
    states   = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"]
    earliest = "2023-01-01T00:00:00+00:00"
    running  = false
  }

  record {
    # AUDITOR's keys and components alone, without those of the default mapping.
    defaults    = false
    id          = "${source.label}-${job.id}"
    start       = job.Start
    stop        = job.End
    submit      = job.Submit
    state       = job.state
    exit_code   = job.exit_code
    exit_signal = job.exit_signal
    meta = merge(
      try({ for k, v in jsondecode(trimsuffix(trimprefix(job.Comment, "\""), "\"")) : k => tostring(v) }, { for k, v in jsondecode(replace(trimsuffix(trimprefix(job.Comment, "\""), "\""), "'", "\"")) : k => tostring(v) }, {}),
      {
        job                = job.JobName
        "limit in seconds" = tostring(job.time_limit_seconds)
        memory             = tostring(job.memory_mb)
        cores              = job.AllocCPUS
        nodes              = job.NodeList
        site_id            = can(regex("gpu", job.Partition)) ? "accelerated" : "plain"
        user_id            = job.user
        group_id           = job.group
      },
    )

    component "Wall" {
      amount = floor(coalesce(job.ElapsedRaw, 0))
      kind   = "total"
    }

    component "CPUTime" {
      amount = job.CPUTimeRAW
      kind   = "total"
    }

    component "CPUTimeText" {
      amount = floor(coalesce(job.CPUTimeRAW, 0))
      kind   = "total"
    }

    component "Memory" {
      amount = job.memory_mb
    }

    component "Nodes" {
      amount = job.NNodes
      when   = can(regex("[2-9]", tostring(job.NNodes)))
    }

    component "Priority" {
      amount = coalesce(job.Priority, 1)
    }

    component "VMSize" {
      amount = coalesce(job.MaxVMSize, 7)

      score "half" {
        value = 0.5
        when  = can(regex("COMPLETED", job.State))
      }
    }
  }
  # tls_config: {use_tls: false}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# slurm-types.yml | key_type: Json | no keys where one value is not a text | the value as a text
# slurm-types.yml | component Memory | 16G is 16 | 16G is 16384: MB of the whole job
# slurm-types.yml | requeued jobs | the second run has the first one's id and is dropped | each run is a record; later ones have their time of submission in the id
# slurm-types.yml | a comment or name with | or a line break | the columns behind it are shifted | read as it is
# slurm-types.yml | a job that never ran | a record of 0 s where slurmdbd has a start, as Slurm 22.05 does | no record; counted as skipped
# slurm-types.yml | steps | the main row, or the batch step; srun's steps do not count | all steps: the largest MaxRSS, the sum of CPU time
# slurm-types.yml | interactive and heterogeneous jobs | their steps are taken for jobs, and the collector breaks off | collected; parts of a heterogeneous job have ids like 7+1
# slurm-types.yml | a column that is missing | the job is dropped with a warning, or the collector breaks off | the job is quarantined with the reason: bursar quarantine list
