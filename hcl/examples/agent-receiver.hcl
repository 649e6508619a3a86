# What TARDIS and AUDITOR's collectors push: `source "receiver" "tardis" {}` alone
# listens on a unix socket; AUDITOR's clients need an address.

agent {
  name     = "obs-head1"
  data_dir = "/var/lib/bursar-agent"
  listen   = "0.0.0.0:7070"
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/obs-head1.pem"
    key  = "/etc/bursar/tls/obs-head1.key"
  }
}

# Programs on this machine, by plain HTTP.
source "receiver" "tardis" {
  config {
    listen   = "127.0.0.1:8000"

    # Without certificates every user of this machine can push. Without listen there is
    # a unix socket, for processes of root and the agent.
    allow_local_users = true

    max_body = "8MiB"

    # A push that cannot be kept waits for so long, and then its connection is
    # reset, so that the client keeps it. Clients give up after 30 s.
    patience = "25s"

    # For so long a second push of an id is answered with RECORD_EXISTS.
    remember = "400d"

    # An amount is a rate unless it is known to be a total, as the CPU seconds of
    # AUDITOR's collectors are, or is said to be one here.
    component "joules" { kind = "total" }

    # Answer it with 200 instead, for clients that stop at the refusal.
    ignore_record_exists_error = false
  }
}

# Collectors on other machines, by mutual TLS.
source "receiver" "remote" {
  config {
    listen = "0.0.0.0:8443"
    tls {
      ca   = "/etc/bursar/tls/ca.pem"
      cert = "/etc/bursar/tls/obs-head1.pem"
      key  = "/etc/bursar/tls/obs-head1.key"
    }
    # These may write although their certificates carry no roles.
    writers = ["collector1.example.org"]
  }
}
