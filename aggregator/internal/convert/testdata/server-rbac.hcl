aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"

  api {
    # AUDITOR's plain port stayed open to everyone beside TLS. Here it answers /health_check
    # on this machine.
    listen     = ["127.0.0.1:8000"]
    tls_listen = ["192.0.2.7:9443"]
  }

  tls {
    ca   = "/etc/auditor/rootCA.pem"
    cert = "/etc/auditor/server-cert.pem"
    key  = "/etc/auditor/server-key.pem"
  }
  # The records of AUDITOR: bursar import auditor
  # 'postgres://postgres@localhost:5432/auditor' with the password in PGPASSWORD.
  # rbac_config.base_policies: [[monitoring_role, /metrics, GET]]: the roles read, write
  # and monitor are fixed
}

access {
  plain_role = "none"

  client "prometheus" {
    roles = ["monitor"]
  }

  client "htcondor.collector" {
    roles = ["write"]
  }

  client "both" {
    roles = ["write", "read"]
  }

  client "apel.plugin" {
    roles = ["read"]
    rows  = [{ site_id = ["site_id_1", "site_id_2"] }]
  }

  client "belle" {
    roles = ["read"]
    rows  = [{ site_id = ["site_id_1"], "group id" = ["belle"] }]
  }
}
# server-rbac.yml | variables AUDITOR_… | win over the files | none; those of AUDITOR's unit are not converted
# server-rbac.yml | application.port beside TLS | reads and writes without a certificate, from everywhere | /health_check on this machine
# server-rbac.yml | tls_config | any certificate serves | the same; between agents and aggregators only those of bursar tls
# server-rbac.yml | rbac_config.enforce_rbac | not enforced without ignore_record_exists_error; the health check is denied | enforced; /health_check is for everyone
# server-rbac.yml | rbac_config.data_access_rules | of all readers together, and only records with all of the values | of each reader; records with one of the values
