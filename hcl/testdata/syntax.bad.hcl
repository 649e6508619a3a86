agent {
  name = "a"
  data_dir = "/d"
}

source "slurm" "nemo" {
  interval = "1m" "2m"
}

source "slurm" "b" {
  intervall = "1m"
}
