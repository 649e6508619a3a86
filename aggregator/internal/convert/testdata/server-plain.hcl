aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"

  api {
    listen = ["0.0.0.0:8000"]
    # Other machines reach it without a certificate, as with AUDITOR: keep a firewall before
    # it. Name the host as clients do.
    allow_plain_remote = true
    # hosts = ["accounting.example.org"]
    ignore_record_exists_error = true
  }

  metrics {
    frequency     = "30s"
    site_meta_key = "site"
    # AUDITOR's default; bursar's sources and the Slurm collector write site_id
    group_meta_key = "group_id"
    user_meta_key  = "user"
    # AUDITOR's default; bursar's sources and the Slurm collector write user_id
  }

  log {
    level = "debug"
  }

  # AUDITOR moved records older than 3 months to /srv/auditor-archive. Here records stay,
  # in some 60 bytes each, and can be asked for. A copy of everything, each day, on
  # another disk:
  # backup {
  #   path  = "/srv/auditor-archive"
  #   every = "24h"
  #   keep  = 7
  # }
  # Its archives are read by: bursar import auditor /srv/auditor-archive/auditor_*.parquet
  # The records of AUDITOR: bursar import auditor
  # 'postgres://postgres@localhost:5432/auditor' with the password in PGPASSWORD.
  # application.web_workers: 4: there are as many as processors
  # logging: {log_to_file: true, log_dir: /var/log/auditor}: the journal keeps the log
}

access {
  # Whoever reaches a plain address reads, writes and gets /metrics, as with AUDITOR.
  plain_role = "monitor,read,write"
}
# server-plain.yml | application.addr | any name of the host in a request | only those of hosts, addresses and localhost
# server-plain.yml | ignore_record_exists_error | new records of a bulk with a known one are lost | they are stored
# server-plain.yml | archival_config | old records leave the database and cannot be asked for | records stay
