aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"

  api {
    listen = ["127.0.0.1:8000", "[::1]:8000"]
  }
  # The records of AUDITOR: bursar import auditor
  # 'postgres://auditor@localhost:5432/auditor' with the password in PGPASSWORD.
}

access {
  # Whoever reaches a plain address reads, writes and gets /metrics, as with AUDITOR.
  plain_role = "monitor,read,write"
}
# server-local.yml | variables AUDITOR_… | win over the files | none; those of AUDITOR's unit are not converted
