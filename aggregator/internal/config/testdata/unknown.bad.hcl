aggregator {
  name     = "agg1"
  datadir  = "/var/lib/bursar"
  api {
    listens = ["127.0.0.1:8000"]
  }
  backup { evry = "1h" }
  reports { dimensions = ["site_id"] }
}

action "Priority" "nemo 1" {
  schedule = "@often"
  zone     = "Berlin"
  retries  = 3
}

agent "head1" {}
agent "head1" { address = "head1:7070" }
