aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}
