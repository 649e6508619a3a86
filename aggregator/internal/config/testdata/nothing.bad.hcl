aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  raft {
    listen = "0.0.0.0:8701"
    peers  = { agg2 = "agg2.example.org:8701" }
  }
  api {
    listen = []
  }
}
