aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
}

action "apel" "auditor" {
  schedule = "1h"

  config {
    # The first month that bursar reports: let AUDITOR's plugin send those before, since the
    # receiver replaces a month by what is sent.
    from = "2026-11"

    site "UNI" {
      ids = ["hpc"]
    }

    fields {
      CpuDuration = record.components.TotalCPU.amount
      Processors  = record.components.Cores.amount
      VO          = try(regex("/(.*?)(?:/|$)", record.meta.voms[0])[0], "None")
      SubmitHost  = "ce1.example.org"
      VOGroup     = try(regex("/(?:atlas|cms)", record.meta.voms[0]), "None")
    }

    benchmark "HEPscore23" {
      wall = round(record.runtime * record.components.Cores.scores.hepscore23)
      cpu  = round(record.components.TotalCPU.amount * record.components.Cores.scores.hepscore23)
    }

    sign {
      cert = "c.pem"
      key  = "k.pem"
    }

    ams {
      host       = "msg-devel.argo.grnet.gr"
      authn_port = 443
      project    = "accounting"
      topic      = "test"
      timeout    = "10s"
    }
  }
  # plugin.log_level: DEBUG: the journal keeps the log
  # plugin.time_json_path: time.json: what was sent is part of the replicated state
  # messaging.retry: 1: failures are tried again until the next run
  # auditor.ip: 127.0.0.1: the action asks its own cluster
  # auditor.port: 8000: the action asks its own cluster
  # auditor.timeout: 60: the action asks its own cluster
  # auditor.use_tls: false: the action asks its own cluster
}
# apel-jobs.yml | report_interval | from this or the last month on; a longer outage leaves a gap | all months since the last run
# apel-jobs.yml | a record without a mandatory field | the plugin breaks off | the record is listed in the run's notes; the others are sent
# apel-jobs.yml | InfrastructureDescription | AUDITOR_VERSION-CE-COLLECTORS | BURSAR-CE-COLLECTOR, of the jobs of the row; the receiver takes it for the same row
