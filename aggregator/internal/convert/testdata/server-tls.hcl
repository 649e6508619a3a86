aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"

  api {
    # AUDITOR's plain port stayed open to everyone beside TLS. Here it answers /health_check
    # on this machine.
    listen     = ["127.0.0.1:8000"]
    tls_listen = ["0.0.0.0:8443", "[::]:8443"]
  }

  tls {
    ca   = "/etc/auditor/rootCA.pem"
    cert = "/etc/auditor/server-cert.pem"
    key  = "/etc/auditor/server-key.pem"
  }

  log {
    level = "info"
  }
  # The records of AUDITOR: bursar import auditor
  # 'postgres://postgres@localhost:5432/auditor' with the password in PGPASSWORD.
}

access {
  # Every certificate of the authority reads, writes and gets /metrics, as with AUDITOR
  # without RBAC.
  plain_role = "none"

  client "*" {
    roles = ["monitor", "read", "write"]
  }
}
# server-tls.yml | variables AUDITOR_… | win over the files | none; those of AUDITOR's unit are not converted
# server-tls.yml | application.port beside TLS | reads and writes without a certificate, from everywhere | /health_check on this machine
# server-tls.yml | tls_config | any certificate serves | the same; between agents and aggregators only those of bursar tls
