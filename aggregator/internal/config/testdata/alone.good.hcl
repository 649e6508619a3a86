aggregator {
  name     = "agg1"
  data_dir = "data"
  raft {
    peers = { agg1 = "agg1.example.org:8701" }
  }
  api {
    listen             = ["0.0.0.0:8000", "localhost:8001", "[::1]:8002"]
    allow_plain_remote = true
  }
}

access {
  plain_role = "read,write"
  client "tardis" {
    roles = ["write"]
  }
  client "apel" {
    roles = ["read"]
    rows  = [{ site_id = ["nemo", "atlas"] }, { site_id = ["other"], group_id = ["belle"] }]
  }
}
