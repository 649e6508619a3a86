aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"

  api {
    listen = ["127.0.0.1:8000"]
  }

  # AUDITOR's archives: bursar import auditor 'archive/auditor_*.parquet'
}

action "archive" "auditor" {
  # cron_schedule: 0 0 3 ? * SUN: it runs each night

  config {
    # In AUDITOR: archive
    # A folder that is there, to which the aggregators can write; of several aggregators the
    # same one, such as a mount.
    directory = "/srv/archive"
    # In AUDITOR: 0; a month is the least.
    remove_after_months = 1
  }
}

# For programs that read AUDITOR's archives: the same months with its columns, in a
# folder of their own. Nothing is removed by this schema, since milliseconds cannot be
# restored exactly.
# action "archive" "columns" {
#   config {
#     directory = "/srv/archive-columns"
#     schema    = "auditor"
#   }
# }

access {
  # Whoever reaches a plain address reads, writes and gets /metrics, as with AUDITOR.
  plain_role = "monitor,read,write"
}
# server-archive.yml | variables AUDITOR_… | win over the files | none; those of AUDITOR's unit are not converted
# server-archive.yml | archival_config | old months leave the database, and cannot be asked for before a script restores them | the same months leave the store; usage and ids stay, archived=true lists their records, bursar archive restore gives them back
# server-archive.yml | archival_config.cron_schedule | and at each start; files are compared by the number of rows | at these times; files are read back and compared before records are removed
# server-archive.yml | archival_config.archive_file_prefix | auditor_YEAR_MONTH.parquet, Gzip, milliseconds | year=YEAR/month=MONTH/records-….parquet, zstd, microseconds
