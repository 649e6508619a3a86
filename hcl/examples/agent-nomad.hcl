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
    # These keys and components are added to those of the default mapping; null leaves a
    # key out.
    meta = {
      title = try(job.meta["title"], null)
      image = job.image
      lost  = job.state == "lost" ? "true" : null
      node  = null
    }
    component "Cores" { # amount and condition are the default's
      score "HEPScore23" { value = job.node_pool == "gpu" ? 21.5 : 10.0 }
    }
  }
}
