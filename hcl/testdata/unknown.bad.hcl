agent {
  name    = "a"
  datadir = "/var/lib/bursar-agent"
  listn   = "0.0.0.0:7070"
  buffer  = { max_size = "8GiB" }
  buffers {
    max_size = "8GiB"
  }
  colour = "red"
  name {
  }
}

sorce "slurm" "nemo" {
}

source "slurm" {
  interval = "1m"
}

source "slurm" "nemo" "extra" {
  interval = "1m"
}

source "" "nemo" {
  interval = "1m"
}

nothing = 1
