# The aggregator "agg1" of a cluster of three. The other two have the same file
# but for their name and their certificate. Two of three go on when one is lost.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"

  # All nodes of the cluster by the names in their certificates, this one
  # included. A new cluster is founded when all of them are there with empty
  # data directories and the same list; a node that comes later, or comes back
  # with an empty directory, is added by the others.
  raft {
    listen = "0.0.0.0:8701"
    peers = {
      agg1 = "agg1.example.org:8701"
      agg2 = "agg2.example.org:8701"
      agg3 = "agg3.example.org:8701"
    }

    # On slow networks and disks: stretches the time after which a silent leader
    # is replaced, from less than 2 s.
    multiplier = 1
  }

  # Every node that has this makes its own snapshots.
  backup { path = "/var/backups/bursar" }

  # Clients may use any node. On its machine, bursar finds it by its unix socket.
  api {
    tls_listen = ["0.0.0.0:8443"]
  }

  # `bursar tls cert create -role aggregator -name agg1 -host agg1.example.org` makes these.
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/agg1.pem"
    key  = "/etc/bursar/tls/agg1.key"
  }
}

agent "nemo-head1" { address = "head1.nemo.example.org:7070" }
