aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  compaction {
    every = "1ms"
    whole = "0s"
    files = "1d"
  }
}
