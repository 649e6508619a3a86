aggregator {
  name     = "agg1"
  datadir  = "/var/lib/bursar"
  api {
    listens = ["127.0.0.1:8000"]
  }
  backup { evry = "1h" }
  reports { dimensions = ["site_id"] }
}

action "priority" "nemo" {
  schedule = "@hourly"
}

agent "head1" {}
agent "head1" { address = "head1:7070" }
