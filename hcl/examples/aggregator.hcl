# The aggregator "agg1", a cluster of one node. What is not here has a default.

# By whose clock days and months begin where nothing else is said; without it UTC.
# zone = "Europe/Berlin"

# Agents that DNS has as services are pulled from, too. Each record of type SRV has the host
# and the port of an agent; the first label of the host is the name in its certificate.
# agent_srv = "_bursar-agent._tcp.example.org"

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"

  # With less free space on the disk of data_dir, writes wait and reads go on.
  # The default is a twentieth of the file system, at most 4GiB. A node neither leads
  # nor pulls with less than a tenth, and warns below 15 %; where min_free is set, with
  # less than two and three times as much, if that is less.
  min_free = "1GiB"

  # How much memory the sums by day of all zones may take. Beyond it the oldest days are
  # only in data_dir, and questions about them read the disk, which takes longer.
  usage_memory = "512MiB"

  # Sums by day are kept of what every tuple of these meta keys used, for the days
  # of these time zones; usage by other keys or in other zones is added up from the
  # records, which takes longer. The whole cluster has the same. The default is
  # the same without Berlin.
  usage {
    dimensions = ["site_id", "group_id", "user_id"]
    zones      = ["UTC", "Europe/Berlin"]
  }

  # The stop of a run whose record has not come is kept for ever, or for so long.
  # `bursar waiting list` shows them.
  waiting_stops {
    expire_after = "90d"
  }

  # Records of runs that stopped longer ago lose the names of users, and the keys of drop;
  # totals stay. Calendar months go whole. Without the block nothing is removed.
  # `bursar person retention` shows what would be. Entries of the audit log, which
  # `bursar audit` shows, go after audit_months, without the block too.
  # RUNBOOKS.md has a table of all that may have names, under *Names leave old records*.
  # retention {
  #   names_months = 18
  #   drop         = ["job_name"]
  #   audit_months = 12
  # }

  # What was deleted or superseded leaves the disk by itself: the leader looks for blocks
  # that are mostly superseded, drops everything that is, and forgets values that no
  # record has; each node then rewrites its files. What was superseded less than keep
  # ago stays: whoever follows the changes and asks again by then misses nothing. These
  # are the defaults.
  compaction {
    every = "1m"
    keep  = "36h"
    whole = "1h"
    files = "1d"
  }

  # This node saves a snapshot now and again, and verifies it before an old one
  # goes. The directory must be there. A failure is in `bursar status`.
  backup {
    path  = "/var/backups/bursar"
    every = "24h"
    keep  = 7
  }

  # AUDITOR's REST API, /v1 and the pages. root and the group bursar administer this
  # node over its unix socket, which the command line finds by itself. Who reaches a
  # plain address has the plain_role, so it is one of this machine; other machines
  # come with a certificate.
  api {
    socket     = "/run/bursar/api.sock" # the default where systemd starts it
    listen     = ["127.0.0.1:8000"]
    tls_listen = ["0.0.0.0:8443"]
    hosts      = ["agg1.example.org"] # names by which clients call a plain address
    max_body   = "64MiB"

    # What answers may take in memory together; more of them wait. Without it: an
    # eighth of what the process may take, from 64 MiB to 1 GiB.
    # answer_memory = "512MiB"

    # A record that is there already is refused, which AUDITOR's clients
    # understand. true answers 200 and a warning instead.
    ignore_record_exists_error = false

    # A write waits this long for the cluster before its connection is broken
    # off; AUDITOR's clients then keep their copy.
    patience = "25s"
  }

  # `bursar tls cert create -role aggregator -name agg1 -host agg1.example.org` makes these.
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/agg1.pem"
    key  = "/etc/bursar/tls/agg1.key"
  }

  # Counts of records on /metrics, by the values of these meta keys. Without a key
  # there is no such count; users of a large site are many lines.
  metrics {
    frequency      = "30s"
    site_meta_key  = "site_id"
    group_meta_key = "group_id"
    user_meta_key  = "user_id"
  }

  log {
    level  = "info"
    format = "text"
  }
}

# The agents to pull from, by the names in their certificates.
agent "nemo-head1" { address = "head1.nemo.example.org:7070" }

agent "atlas-head1" {
  address = "head1.atlas.example.org:7070"
}

# No one reaches this one: it connects to api.tls_listen of the aggregators, and is pulled
# over its connections.
# agent "edge-head1" { dials_in = true }

# Who may do what. A certificate carries its roles (`bursar tls cert create -role
# client -name alice -roles read`); here more is said of some, by the names in their
# certificates, or by the common names in those of another authority. The roles are
# monitor, read, write, operate and admin. Who is not named and whose certificate
# has no role may do nothing.
access {
  # Of everybody on the plain addresses: some of monitor, read and write. "none", the
  # default, leaves /health_check. AUDITOR's clients need "read,write".
  plain_role = "none"

  # Sees the records of one site, and of one group of another, and nothing else.
  client "apel" {
    roles = ["read"]
    rows = [
      { site_id = ["nemo"] },
      { site_id = ["atlas-t2"], group_id = ["belle", "cms"] },
    ]
  }

  # Sees what the directory gives this user: their own records, and those of the projects
  # and groups that they lead.
  client "alice" {
    roles  = ["read"]
    person = "alice"
  }

  client "prometheus.example.org" {
    roles = ["monitor"]
  }
}

# Warnings of `bursar status` that are known and cannot be mended are notices, by their id
# and what they are about, as `bursar status -format json` has them. With more than count
# jobs, runs, records or gaps they are warnings again. Each node judges by its own file.
health {
  acknowledge "runs-missing" {
    about  = "nemo-head1/slurm/nemo 2026-02-19"
    count  = 3
    reason = "the accounting database was restored without them"
  }
}

# An amount that clients of AUDITOR push is a rate, used for as long as the job runs,
# unless it is known to be a total, consumed over the run: TotalCPU, UserCPU, SystemCPU
# and naive_cpu_time are totals. Blocks say the others. The whole cluster has the same.
component "joules" { kind = "total" }
