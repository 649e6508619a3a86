agent {
  name     = "nemo-head1"
  data_dir = "/var/lib/bursar-agent"
  listen   = "0.0.0.0:7070"
  buffer {
    max_size = "8GiB"
    retain   = "30d"
  }
}

source "slurm" "nemo" {
  interval = "1m"
  config {
    partitions = ["compute", "gpu"]
    earliest   = "2024-01-01T00:00:00Z"
  }
  record {
    id = "${source.label}-${job.id}"
    meta = {
      site_id = "nemo"
      voms    = try(jsondecode(job.Comment).voms, null)
    }
    component "Cores" {
      amount = job.NCPUS
      score "HEPScore23" { value = job.Partition == "gpu" ? 21.5 : 10.0 }
    }
    component "GPUs" {
      amount = job.gpus
      when   = job.gpus > 0
    }
    component "GPUs" { amount = 0 }
  }
}

source "slurm" "other" {
  interval = "90s"
}

plugin "action" "priority" {
  path   = "bin/bursar-action-priority"
  sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  env    = { SLURM_CONF = "/etc/slurm/slurm.conf" }
}

log {
  level  = "debug"
  format = "json"
}
