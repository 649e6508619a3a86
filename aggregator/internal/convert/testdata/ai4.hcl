agent {
  name     = "head1" # as in its certificate
  data_dir = "/var/lib/bursar-agent"

  # Aggregators pull by mutual TLS. On the machine of the authority:
  #   bursar tls cert create -role agent -name head1 -host head1.example.org
  # tls {
  #   ca   = "/etc/bursar/tls/ca.pem"
  #   cert = "/etc/bursar/tls/head1.pem"
  #   key  = "/etc/bursar/tls/head1.key"
  # }
}

source "nomad" "ai4eosc" {

  config {
    exclude_namespaces = ["default", "tutorials"]
    address            = "https://203.0.113.7:4646"
    ca                 = "/home/ubuntu/nomad-certs/nomad-ca.pem"
    cert               = "/home/ubuntu/nomad-certs/cli.pem"
    key                = "/home/ubuntu/nomad-certs/cli-key.pem"
    tls_server_name    = "server.global.nomad"
    # ai4-accounting skips all other jobs.
    jobs = ["module*", "tool*", "batch*"]
  }

  record {
    # ai4-accounting knows the task main alone.
    when = job.task == "main"
  }
}
aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
}

person "u1@egi" {
  name  = "Zoe \"Z\""
  email = "zoe@example.org"
}

person "u2@egi" {
  name  = "Ada B"
  email = "ada@example.org"
}

# Its snapshots: bursar import ai4 -label ai4eosc /srv/ai4-accounting/snapshots
# conf.py | snapshots | what is running every few hours | each run, from the event stream and a listing each minute
# conf.py | GPUs, memory and disk | of the task main | the same, by the condition of the record block; without it of all tasks
# conf.py | cpu_num of a job without reserved cores | its MHz are counted as cores | Cores and MHz are two components
# take_snapshot.sh | snapshots | what is running every few hours | each run, from the event stream and a listing each minute
# take_snapshot.sh | GPUs, memory and disk | of the task main | the same, by the condition of the record block; without it of all tasks
# take_snapshot.sh | cpu_num of a job without reserved cores | its MHz are counted as cores | Cores and MHz are two components
