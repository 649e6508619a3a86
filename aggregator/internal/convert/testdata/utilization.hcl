aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
}

action "energy" "auditor" {
  # AUDITOR's table of the last month. `bursar usage -measure energy,co2` and the same
  # action without compat have bursar's own figures: see the block energy.
  schedule = "0 7 * * *"

  config {
    cores     = "Cores"
    benchmark = "HEPscore23"
    file_name = "auditor_summary"
    directory = "/var/lib/auditor_utilization_plugin"
    # AUDITOR reads both addresses and the password from SENDER_EMAIL, RECEIVER_EMAIL and
    # PASSWORD.
    to = ["head@example.org"]

    mail {
      from          = "auditor@example.org"
      host          = "mail.example.org"
      port          = 587
      user          = "auditor@example.org"
      password_file = "/etc/bursar/mail.password"
    }

    compat {
      grouped_by    = "VOMS"
      grouped_list  = ["production", "lcgadmin", "ilc", "ops"]
      watt_per_core = 4.6
      watt_per_core_of_site = {
        site-a = "4.6"
        site-b = "4.3"
      }
      co2_per_kwh    = 0.363
      collector_type = "htcondor"
      total_cpu      = "TotalCPU"
    }
  }
  # logging: {level: INFO, file: app.log}: the journal keeps the log
  # auditor.hosts: [auditor.example.org]: bursar asks its own cluster
  # auditor.port: [8001]: bursar asks its own cluster
  # auditor.timeout: 60: bursar asks its own cluster
  # auditor.site_meta_field: site_id: bursar asks its own cluster
  # auditor.use_tls: False: bursar asks its own cluster
  # auditor.ca_cert_path: /path/rootCA.pem: bursar asks its own cluster
  # utilization.interval: 10: a schedule has calendar times
}
# utilization.yml | utilization.file_name | FILE_NAME_HOST_MONTH_YEAR.csv, written again each interval | FILE_NAME_auditor_MONTH_YEAR.csv, written once when the month has ended
