aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  compaction {
    every = "1ms"
    whole = "0s"
    keep  = "10ms"
    files = "1d"
  }
}
