aggregator {
  name     = "agg 1"
  data_dir = "/var/lib/bursar"
  raft {
    peers = {
      agg1 = "agg1.example.org:8701"
      agg2 = "agg2.example.org:8701"
    }
  }
  api {
    listen     = ["0.0.0.0:8000", "192.0.2.1:8000", ":8000", "accounting.example.org:80", "127.0.0.1:1", "127.0.0.1:1"]
    tls_listen = ["0.0.0.0:8443"]
    max_body   = "12B"
    patience   = "0s"
  }
  metrics {
    frequency     = "10ms"
    site_meta_key = "a/b"
  }
  log {
    level = "loud"
  }
  backup {
    path  = "/var/lib/bursar/backup"
    every = "1s"
    keep  = 0
  }
}

agent "head/1" { address = ":7070" }

access {
  plain_role = "king"
  client "a" {
    roles = ["read", "reader", "read,write"]
    rows  = [{}, { "a/b" = ["x"] }, { site_id = [] }]
  }
  client "a" { rows = [] }
  client "b" {}
  widget_origins = [
    "https://ood.example.org", "https://ood.example.org:8443", "http://127.0.0.1:3000",
    "ood.example.org", "https://ood.example.org/", "https://*.example.org", "https://a; script-src *", "http://ood.example.org", "",
  ]
  view "good" { address = "/ui/records?runs=running" }
  view "good" { address = "/ui/usage" }
  view "elsewhere" { address = "https://example.org/ui/usage" }
  view "other" { address = "/ui/agents" }
}
