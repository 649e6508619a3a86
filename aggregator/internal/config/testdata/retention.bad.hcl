aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  retention {
    names_months = 0
    drop         = ["job_name", "job_name", "", "site_id", "account"]
  }
}
