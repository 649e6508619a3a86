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

  # AUDITOR's archives: bursar import auditor '/srv/auditor-archive/auditor_*.parquet'
  # The records of AUDITOR: bursar import auditor
  # 'postgres://postgres@localhost:5432/auditor' with the password in PGPASSWORD.
  # application.web_workers: 4: there are as many as processors
  # logging: {log_to_file: true, log_dir: /var/log/auditor}: the journal keeps the log
}

action "archive" "auditor" {
  schedule = "0 2 1 * *"
  zone     = "UTC"

  config {
    # A folder that is there, to which the aggregators can write; of several aggregators the
    # same one, such as a mount.
    directory           = "/srv/auditor-archive"
    remove_after_months = 3
  }
}

# For programs that read AUDITOR's archives: the same months with its columns, in a
# folder of their own. Nothing is removed by this schema, since milliseconds cannot be
# restored exactly.
# action "archive" "columns" {
#   config {
#     directory = "/srv/auditor-archive-columns"
#     schema    = "auditor"
#   }
# }

access {
  # Whoever reaches a plain address reads, writes and gets /metrics, as with AUDITOR.
  plain_role = "monitor,read,write"
}
# server-plain.yml | variables AUDITOR_… | win over the files | none; those of AUDITOR's unit are not converted
# server-plain.yml | application.addr | any name of the host in a request | only those of hosts, addresses and localhost
# server-plain.yml | ignore_record_exists_error | new records of a bulk with a known one are lost | they are stored
# server-plain.yml | archival_config | old months leave the database, and cannot be asked for before a script restores them | the same months leave the store; usage and ids stay, archived=true lists their records, bursar archive restore gives them back
# server-plain.yml | archival_config.cron_schedule | and at each start; files are compared by the number of rows | at these times; files are read back and compared before records are removed
# server-plain.yml | archival_config.archive_file_prefix | auditor_YEAR_MONTH.parquet, Gzip, milliseconds | year=YEAR/month=MONTH/records-….parquet, zstd, microseconds
