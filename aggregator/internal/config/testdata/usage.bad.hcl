aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  usage {
    dimensions = ["site_id", "", "site_id"]
    zones      = ["UTC", "Europe/Belin"]
  }
}
