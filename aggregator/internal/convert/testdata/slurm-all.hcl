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

source "slurm" "slurm" {
  interval = "5m"

  config {
    states     = ["COMPLETED", "FAILED"]
    partitions = ["part1", "part2"]
    users      = ["alice"]
    groups     = ["atlas", "cms"]
    accounts   = ["physics"]
    earliest   = "2023-09-15T12:00:00+00:00"
    running    = false
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
    # A job of no site is left out.
    when = can(regex("^part1$", job.Partition)) || can(regex("^(4|8)$", tostring(job.NCPUS)))
    meta = merge(
      try({ for k, v in jsondecode(trimsuffix(trimprefix(job.Comment, "\""), "\"")) : k => tostring(v) }, { for k, v in jsondecode(replace(trimsuffix(trimprefix(job.Comment, "\""), "\""), "'", "\"")) : k => tostring(v) }, {}),
      {
        account          = job.Account
        "flags of $${x}" = job.Flags
        site_id          = can(regex("^part1$", job.Partition)) ? "mysite1" : can(regex("^(4|8)$", tostring(job.NCPUS))) ? "mysite2" : null
        user_id          = job.user
        group_id         = job.group
      },
    )

    component "Cores" {
      amount = job.NCPUS

      score "HEPSPEC06" {
        value = 10.0
      }

      score "hepscore23" {
        value = 11.5
        when  = can(regex("part1", job.Partition))
      }

      score "hepscore23" {
        value = 12
        when  = can(regex("part2", job.Partition))
      }
    }

    component "SystemCPU" {
      amount = floor(coalesce(job.SystemCPU, 0))
      kind   = "total"
      when   = can(regex("^part1$", job.Partition))
    }

    component "UserCPU" {
      amount = floor(coalesce(job.UserCPU, 0))
      kind   = "total"
    }

    component "TotalCPU" {
      amount = floor(coalesce(job.TotalCPU, 0))
      kind   = "total"
    }

    component "Memory" {
      amount = job.memory_mb
    }

    component "MaxRSS" {
      amount = coalesce(job.MaxRSS, 0)
    }

    component "NNodes" {
      amount = job.NNodes
    }

    component "Limit" {
      amount = coalesce(job.time_limit_seconds, 0)
    }
    # component AveRSS: bursar has no column AveRSS of Slurm's
  }
  # addr: auditor.example.org: an agent is not told where to send: aggregators pull, see
  # agent in aggregator.hcl
  # port: 8000: an agent is not told where to send: aggregators pull, see agent in
  # aggregator.hcl
  # sender_frequency: 60: nothing is sent: aggregators pull
  # database_path: /var/lib/auditor-slurm-collector/db.db: the agent keeps its state in
  # data_dir
  # meta[2].only_if: {key: "Partition", matches: "part1"}: AUDITOR does not look at it
  # either
  # log_level: info: see log { level } in the block agent; AUDITOR's trace is debug
  # logging: {log_to_file: true}: the journal keeps the log
  # tls_config: {use_tls: false}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# slurm-all.yml | key_type: Json | no keys where one value is not a text | the value as a text
# slurm-all.yml | component Memory | 16G is 16 | 16G is 16384: MB of the whole job
# slurm-all.yml | component AveRSS | column AveRSS | bursar does not have it; the component is left out
# slurm-all.yml | requeued jobs | the second run has the first one's id and is dropped | each run is a record; later ones have their time of submission in the id
# slurm-all.yml | a comment or name with | or a line break | the columns behind it are shifted | read as it is
# slurm-all.yml | a job that never ran | a record of 0 s where slurmdbd has a start, as Slurm 22.05 does | no record; counted as skipped
# slurm-all.yml | steps | the main row, or the batch step; srun's steps do not count | all steps: the largest MaxRSS, the sum of CPU time
# slurm-all.yml | interactive and heterogeneous jobs | their steps are taken for jobs, and the collector breaks off | collected; parts of a heterogeneous job have ids like 7+1
# slurm-all.yml | a column that is missing | the job is dropped with a warning, or the collector breaks off | the job is quarantined with the reason: bursar quarantine list
