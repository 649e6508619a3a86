aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
}

action "apel" "auditor" {
  schedule = "1d"

  config {
    # The first month that bursar reports: let AUDITOR's plugin send those before, since the
    # receiver replaces a month by what is sent.
    from      = "2026-11"
    site_meta = ["site_id", "site"]

    site "SITE_A" {
      ids = ["site_id_1", "site_id_2"]
    }

    site "SITE_B" {
      ids = ["site_id_3"]
    }

    fields {
      # Of records in milliseconds only, as AUDITOR's Slurm collector made them before 0.11:
      # bursar's sources and newer collectors give seconds.
      CpuDuration = round(record.components.TotalCPU.amount / 1000)
      Processors  = record.components.Cores.amount
      VO = lookupprefix({
        "/atlas"    = "atlas"
        "/cms/dcms" = "cms.de"
      }, try(record.meta.voms[0], ""), "None")
      SubmitHost     = try(record.meta.headnode[0], "None")
      GlobalUserName = try(record.meta.subject[0], "None")
      VOGroup        = try(regex("/(.*?)(?:/Role|$)", record.meta.voms[0])[0], "None")
      VORole         = try(regex("((?:Role).*?)(?:/|$)", record.meta.voms[0])[0], "None")
      Infrastructure = "grid"
      NodeCount      = record.components.NNodes.amount
    }

    benchmark "HEPscore23" {
      wall = round(record.runtime * record.components.Cores.scores.hepscore23)
      cpu  = round(round(record.components.TotalCPU.amount / 1000) * record.components.Cores.scores.hepscore23)
    }

    sign {
      cert = "/etc/grid-security/hostcert.pem"
      key  = "/etc/grid-security/hostkey.pem"
    }

    ams {
      host       = "msg.argo.grnet.gr"
      authn_port = 8443
      project    = "accounting"
      topic      = "gLite-APEL"
      timeout    = "10s"
    }
  }
  # plugin.log_level: INFO: the journal keeps the log
  # plugin.log_file: /var/log/auditor_apel_plugin.log: the journal keeps the log
  # plugin.time_json_path: /var/lib/auditor_apel_plugin/time.json: what was sent is part
  # of the replicated state
  # messaging.retry: 3: failures are tried again until the next run
  # auditor.ip: 127.0.0.1: the action asks its own cluster
  # auditor.port: 3333: the action asks its own cluster
  # auditor.timeout: 60: the action asks its own cluster
  # auditor.use_tls: True: the action asks its own cluster
  # auditor.ca_cert_path: /path/rootCA.pem: the action asks its own cluster
  # auditor.client_cert_path: /path/client-cert.pem: the action asks its own cluster
  # auditor.client_key_path: /path/client-key.pem: the action asks its own cluster
}
# apel.yml | divide_by: 1000 of TotalCPU | milliseconds, of collectors before 0.11 | kept; records in seconds need no division
# apel.yml | report_interval | from this or the last month on; a longer outage leaves a gap | all months since the last run
# apel.yml | a record without a mandatory field | the plugin breaks off | the record is listed in the run's notes; the others are sent
# apel.yml | InfrastructureDescription | AUDITOR_VERSION-CE-COLLECTORS | BURSAR-CE-COLLECTOR, of the jobs of the row; the receiver takes it for the same row
