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
