# The aggregator in a container, as one of three. All nodes have this file; the
# container's hostname is the node's name, which its certificate has, too.

aggregator {
  name     = hostname()
  data_dir = "/var/lib/bursar"

  raft {
    listen = "0.0.0.0:8701"
    peers = {
      agg1 = "agg1:8701"
      agg2 = "agg2:8701"
      agg3 = "agg3:8701"
    }
  }

  api {
    tls_listen = ["0.0.0.0:8443"]
  }

  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/${hostname()}.pem"
    key  = "/etc/bursar/tls/${hostname()}.key"
  }

  backup { path = "/var/backups/bursar" }

  # Older records lose the names of users; totals stay. See: bursar person retention
  retention { names_months = 18 }
}

access { plain_role = "none" }

# The agents to pull from, by the names in their certificates.
#
# agent "nemo-head1" { address = "head1.nemo.example.org:7070" }
