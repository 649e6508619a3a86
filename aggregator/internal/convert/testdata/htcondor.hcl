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

source "htcondor" "htcondor" {
  interval = "15m"

  config {
    through    = "commands"
    pool       = "htcondor.example.org"
    constraint = "AcctGroup =!= \"group_test\""

    schedd "schedd1.example.org" {
    }

    schedd "schedd2.example.org" {
    }
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
      user       = try(regex("^(.+)$", job.ad_text["owner"])[0], null)
      group      = try(regex("^(.+)$", job.ad_text["voname"])[0], null)
      submithost = try(regex("^(.*)#\\d+.\\d+#\\d+$", job.ad_text["globaljobid"])[0], null)
      kinds = [for v in [
        try(can(regex("^group_physics", job.ad_text["acctgroup"])) ? "physics" : null, null),
        try(can(regex("[A-Z]+-[0-9]{2}", job.ad_text["projectname"])) ? "owned" : null, null),
        "any",
      ] : v if v != null]
      site = try(coalesce(
        try(can(regex("^slot.+@site1-.+$", job.ad_text["lastremotehost"])) ? "site1" : null, null),
        try(regex("^slot.+@(site2)-.+$", job.ad_text["lastremotehost"])[0], null),
        "UNDEF",
      ), null)
    }

    component "Cores" {
      amount = floor(tonumber(try(job.ad_text["cpusprovisioned"], null)))

      score "HEPSPEC" {
        value = coalesce(try(tonumber(try(can(regex("^slot.+@(?:site1)-.{10}@.+$", job.ad_text["lastremotehost"])) ? regex("HEPSPEC\\D+(\\d+(\\.\\d+)?)", job.ad_text["machineattrapelspecs0"])[0] : null, null)), null), 0)
      }

      score "Fixed" {
        value = coalesce(try(tonumber(try(1.5, null)), null), 0)
      }
    }

    component "Memory" {
      amount = floor(tonumber(try(job.ad_text["memoryprovisioned"], null)))
    }

    component "TotalCPU" {
      amount = floor(tonumber(try(tonumber(job.ad_text["remoteusercpu"]) + tonumber(job.ad_text["remotesyscpu"]), null)))
      kind   = "total"
    }

    component "Slots" {
      amount = floor(tonumber(try(1, null)))
    }
  }
  # addr: localhost: an agent is not told where to send: aggregators pull, see agent in
  # aggregator.hcl
  # port: 8000: an agent is not told where to send: aggregators pull, see agent in
  # aggregator.hcl
  # timeout: 10: an agent is not told where to send: aggregators pull, see agent in
  # aggregator.hcl
  # state_db: /var/lib/auditor_htcondor_collector/htcondor_history_state.db: the agent
  # keeps its state in data_dir
  # tls_config: {use_tls: False}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# htcondor.yml | start of a run | LastMatchTime, which is earlier where a claim is used again | when the run began (JobCurrentStartDate)
# htcondor.yml | stop of a run | that of the job: the first of CompletionDate, EpochWriteDate, EnteredCurrentStatus, else 1970 | of a run that was held, evicted or removed when it left its slot (LastVacateTime)
# htcondor.yml | runs of a job | the last one | each, where there are epochs; later ones have their number behind the id
# htcondor.yml | matches | the collector breaks off at a number | numbers are compared as texts, too
# htcondor.yml | a value with a comma | the columns behind it are shifted | read as it is
# htcondor.yml | history_file | this file | this file and its rotations
# htcondor.yml | an attribute that is an expression | its value | its text
# htcondor.yml | a truth value in meta | True or False | true or false
# htcondor.yml | RECORD_EXISTS | the collector breaks off and stays at that job | does not occur: aggregators pull
# htcondor.yml | a component without a value | the job is skipped | the job is quarantined with the reason: bursar quarantine list
