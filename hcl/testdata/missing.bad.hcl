agent {
  buffer {
  }
}
source "slurm" "nemo" {
}
metrics {
}
