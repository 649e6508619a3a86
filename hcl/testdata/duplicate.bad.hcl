agent {
  name     = "a"
  name     = "b"
  data_dir = "/d"
}

agent {
  name     = "again"
  data_dir = "/d"
}

source "slurm" "nemo" {
  interval = "1m"
}

source "slurm" "nemo" {
  interval = "2m"
  config {
  }
  config {
  }
}
