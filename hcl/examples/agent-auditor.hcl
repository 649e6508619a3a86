# Follows an AUDITOR that collectors still push to, while a site moves: its records come
# under their own ids. `bursar import auditor` brings them once instead.

agent {
  name     = "auditor1"
  data_dir = "/var/lib/bursar-agent"
}

source "auditor" "site" {
  interval = "10m"

  config {
    url = "https://auditor.example.org:8443"
    tls {
      ca   = "/etc/bursar/auditor/ca.pem"
      cert = "/etc/bursar/auditor/client.pem" # with RBAC: with the right to read
      key  = "/etc/bursar/auditor/client.key"
    }

    # Faster: the database itself, by a user that has SELECT on auditor_accounting.
    # database = file("/etc/bursar/auditor.dsn") # postgres://reader:…@db.example.org/auditor

    running       = true
    earliest      = "2024-01-01T00:00:00Z"
    overlap       = "1h"
    deep_overlap  = "7d"
    deep_interval = "6h"

    component "cpu" { kind = "total" } # seconds, by the Kubernetes collector with Prometheus
  }

  record {
    when = !contains(job.meta.group_id, "test")

    # CPU times of the Slurm collector were milliseconds before AUDITOR 0.11.
    components = [for c in jsondecode(job.components) : merge(c, {
      amount = c.name == "TotalCPU" && unix(job.stop) < unix("2026-10-01T12:00:00Z") ? floor(c.amount / 1000) : c.amount
    })]
  }
}
