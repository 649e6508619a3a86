agent {
  name     = "a1"
  data_dir = "data"
}

source "slurm" "nemo" {
  config {
    partitions = ["compute", "gpu"]
    password   = env("BURSAR_TEST_PASSWORD")
    limit "day" {
      most = 1.5
      on   = true
      map  = { b = 2, a = null }
    }
  }
  record {
    id = "x-${job.id}"
  }
}

source "nomad" "cloud" {
  enabled  = false
  interval = "5m"
}

plugin "source" "slurm" {
  path = "plugins/bursar-source-slurm"
  env  = { A = "b" }
}
