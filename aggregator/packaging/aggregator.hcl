# The bursar aggregator, as a cluster of this node alone.
#
#   bursar aggregator -check         says what is wrong in here, with its line
#   systemctl enable --now bursar    starts it; systemctl reload after a change
#   bursar status                    is all well?
#
# All settings: man bursar.hcl, /usr/share/doc/bursar/examples.

aggregator {
  # The name in this node's certificate.
  name     = "agg1"
  # Beside it is /var/lib/bursar-progress, by which the node notices that its data are
  # an older copy. Another path needs ReadWritePaths= in the unit, for both.
  data_dir = "/var/lib/bursar"

  # The REST API and the pages. root and the members of the group bursar administer
  # this node over the unix socket /run/bursar/api.sock, which bursar finds by itself;
  # bursar login prints a link that opens the pages. A plain address is for this
  # machine only; others come with a certificate.
  api {
    listen = ["127.0.0.1:8000"]
    # tls_listen = ["0.0.0.0:8443"]
  }

  # Snapshots of all data, each verified before an old one goes. Copy some of them
  # to another machine. Another path needs ReadWritePaths= in the unit:
  # systemctl edit bursar.
  #
  # backup {
  #   path  = "/var/backups/bursar"
  #   every = "24h"
  #   keep  = 7
  # }

  # Older records lose the names of users; totals stay. See: bursar person retention
  retention { names_months = 18 }

  # Agents are pulled with this certificate, and tls_listen needs it.
  #
  #   bursar tls ca create -dir DIR      (once; keep ca.key away from the servers)
  #   bursar tls cert create -ca-dir DIR -role aggregator -name agg1 -host agg1.example.org
  #   install -o root -g bursar -m 0640 agg1.key /etc/bursar/tls/
  #   install -o root -g bursar -m 0644 ca.pem agg1.pem /etc/bursar/tls/
  #
  # tls {
  #   ca   = "/etc/bursar/tls/ca.pem"
  #   cert = "/etc/bursar/tls/agg1.pem"
  #   key  = "/etc/bursar/tls/agg1.key"
  # }
}

# The agents to pull from, by the names in their certificates.
#
# agent "nemo-head1" { address = "head1.nemo.example.org:7070" }

# What every user of this machine may do at the plain address: "none" leaves
# /health_check, "monitor" is for Prometheus, "read,write" for AUDITOR's clients.
access {
  plain_role = "none"
}
