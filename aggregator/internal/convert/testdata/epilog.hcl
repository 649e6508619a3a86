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

source "slurm-epilog" "slurm" {

  record {
    # AUDITOR's keys and components alone, without those of the default mapping.
    defaults    = false
    id          = "${source.label}-${job.JobIDRaw}${trimprefix(job.id, job.JobID)}"
    start       = job.Start
    stop        = job.End
    submit      = job.Submit
    state       = job.state
    exit_code   = job.exit_code
    exit_signal = job.exit_signal
    meta = {
      site_id  = "site_name"
      user_id  = job.user
      group_id = job.group
    }

    component "Cores" {
      amount = job.AllocCPUS

      score "HEPSPEC" {
        value = 1.0
        when  = can(regex("^part1$", job.Partition))
      }
    }

    component "Memory" {
      amount = job.memory_mb
    }
  }
  # addr: auditor.example.org: an agent is not told where to send: aggregators pull, see
  # agent in aggregator.hcl
  # port: 8000: an agent is not told where to send: aggregators pull, see agent in
  # aggregator.hcl
  # log_level: info: see log { level } in the block agent; AUDITOR's trace is debug
  # tls_config: {use_tls: false}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# epilog.yml | Epilog of slurm.conf | auditor-slurm-epilog-collector | bursar-epilog, which returns when the job is on the agent's disk
# epilog.yml | what a job used | scontrol at the end of the job | sacct some seconds later; scontrol's figures only where slurmdbd lacks the job
# epilog.yml | AUDITOR away | the record is lost and the epilog fails | the job waits on disk and the epilog succeeds
