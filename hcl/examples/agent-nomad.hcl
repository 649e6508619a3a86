# What ran on a Nomad cluster. `source "nomad" "cloud" {}` alone is right where the
# agent's machine has a Nomad agent without ACLs; everything below is optional.

agent {
  name     = "cloud-head1"
  data_dir = "/var/lib/bursar-agent"
}

source "nomad" "cloud" {
  config {
    address         = "https://nomad.example.org:4646"
    token_file      = "/etc/bursar/nomad.token"
    ca              = "/etc/bursar/nomad/ca.pem"
    cert            = "/etc/bursar/nomad/client.pem"
    key             = "/etc/bursar/nomad/client.key"
    tls_server_name = "server.global.nomad"

    exclude_namespaces = ["default", "tutorials"]
    jobs               = ["module-*", "tool-*", "batch-*"]
    node_pools         = ["default", "gpu*"]

    # Keys of the job's meta.
    owner       = "owner"
    owner_name  = "owner_name"
    owner_email = "owner_email"

    list_interval = "1m"
    lost          = "bill" # a node that cannot be reached counts until Nomad gives it up
    kept          = "1h"   # the least of the server's *_gc_threshold
  }

  record {
    meta = {
      site_id   = "cloud"
      user_id   = job.owner
      group_id  = job.namespace
      job       = job.job_name
      title     = try(job.meta["title"], null)
      image     = job.image
      gpu_model = job.gpu_model
      lost      = job.state == "lost" ? "true" : null
    }
    component "Cores" {
      amount = job.cores
      when   = try(job.cores > 0, false)
      score "HEPScore23" { value = job.node_pool == "gpu" ? 21.5 : 10.0 }
    }
    component "MHz" {
      amount = job.cpu_mhz
      when   = job.cpu_mhz != null
    }
    component "Memory" {
      amount = job.memory_mb
      when   = job.memory_mb != null
    }
    component "GPUs" {
      amount = job.gpus
      when   = try(job.gpus > 0, false)
    }
    component "GPUs:Tesla V100" { # the capacity has each model, too
      amount = try(job.gpus_by_model["Tesla V100"], 0)
      when   = try(job.gpus_by_model["Tesla V100"] > 0, false)
    }
  }
}
