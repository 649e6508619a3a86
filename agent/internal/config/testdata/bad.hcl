agent {
  name     = "head 1"
  data_dri = "/var/lib/bursar-agent"
  listen   = "0.0.0.0:7070"
  buffer {
    max_size = "1KiB"
    retain   = "1s"
  }
}

source "Slurm" "nemo" {
  interval = "1ms"
}

source "slurm" "a b" {
  confg {}
}

source "slurm" "twice" {
  config { path = env("BURSAR_NO_SUCH_VARIABLE") }
}

source "slurm" "twice" {}

source "nomad" "twice" {
  interval = "soon"
}

plugin "source" "slrm" {
  sha256 = "12"
}

plugin "action" "priority" {}
