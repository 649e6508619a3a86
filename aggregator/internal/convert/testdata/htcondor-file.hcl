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

source "htcondor" "ce" {
  interval = "15m"

  config {
    history = "/var/lib/condor/spool/history"
    # The history has the last run of a job. With the epoch history each run counts: epochs
    # = "…"
    earliest = "2025-01-01T00:00:00+00:00"
  }

  record {
    # AUDITOR's keys and components alone, without those of the default mapping.
    defaults    = false
    id          = "${source.label}-${job.id}"
    start       = job.start_time
    stop        = job.end_time
    submit      = job.QDate
    state       = job.state
    exit_code   = job.exit_code
    exit_signal = job.exit_signal
    meta = {
      site = "here"
    }
    # The ClassAd expression ifThenElse(CpusProvisioned =?= undefined, 1, CpusProvisioned)
    # has no equal here: write it with job.ad

    component "Disk" {
      amount = floor(tonumber(try(job.ad_text["diskprovisioned"], null)))
    }
  }
  # state_db: state.db: the agent keeps its state in data_dir
  # tls_config: {use_tls: False}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# htcondor-file.yml | key ifThenElse(CpusProvisioned =?= undefined, 1, CpusProvisioned) | an expression that condor_history evaluates | not converted: write it with job.ad
# htcondor-file.yml | component Cores | ifThenElse(CpusProvisioned =?= undefined, 1, CpusProvisioned) | left out
# htcondor-file.yml | start of a run | LastMatchTime, which is earlier where a claim is used again | when the run began (JobCurrentStartDate)
# htcondor-file.yml | stop of a run | that of the job: the first of CompletionDate, EpochWriteDate, EnteredCurrentStatus, else 1970 | of a run that was held, evicted or removed when it left its slot (LastVacateTime)
# htcondor-file.yml | runs of a job | the last one | each, where there are epochs; later ones have their number behind the id
# htcondor-file.yml | matches | the collector breaks off at a number | numbers are compared as texts, too
# htcondor-file.yml | a value with a comma | the columns behind it are shifted | read as it is
# htcondor-file.yml | history_file | this file | this file and its rotations
# htcondor-file.yml | an attribute that is an expression | its value | its text
# htcondor-file.yml | a truth value in meta | True or False | true or false
# htcondor-file.yml | RECORD_EXISTS | the collector breaks off and stays at that job | does not occur: aggregators pull
# htcondor-file.yml | a component without a value | the job is skipped | the job is quarantined with the reason: bursar quarantine list
