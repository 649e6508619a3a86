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

source "slurm" "site-one" {

  config {
    states  = ["COMPLETED"]
    running = false
  }

  record {
    # AUDITOR's keys and components alone, without those of the default mapping.
    defaults    = false
    id          = "site one-${job.id}"
    start       = job.Start
    stop        = job.End
    submit      = job.Submit
    state       = job.state
    exit_code   = job.exit_code
    exit_signal = job.exit_signal
    meta = {
      site_id  = "NOT_CONFIGURED"
      user_id  = job.user
      group_id = job.group
    }

    component "Cores" {
      amount = job.NCPUS
    }
  }
  # addr: 127.0.0.1: an agent is not told where to send: aggregators pull, see agent in
  # aggregator.hcl
  # tls_config: {use_tls: false}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# slurm-least.yml | earliest_datetime | not set: from the first start of the collector on | all that slurmdbd has; what AUDITOR sent has the same ids
# slurm-least.yml | requeued jobs | the second run has the first one's id and is dropped | each run is a record; later ones have their time of submission in the id
# slurm-least.yml | a comment or name with | or a line break | the columns behind it are shifted | read as it is
# slurm-least.yml | a job that never ran | a record of 0 s where slurmdbd has a start, as Slurm 22.05 does | no record; counted as skipped
# slurm-least.yml | steps | the main row, or the batch step; srun's steps do not count | all steps: the largest MaxRSS, the sum of CPU time
# slurm-least.yml | interactive and heterogeneous jobs | their steps are taken for jobs, and the collector breaks off | collected; parts of a heterogeneous job have ids like 7+1
# slurm-least.yml | a column that is missing | the job is dropped with a warning, or the collector breaks off | the job is quarantined with the reason: bursar quarantine list
