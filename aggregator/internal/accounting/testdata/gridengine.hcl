aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# What ClusterAccountant has in its table processor_type, but for the types that are
# disabled: there they never were.
cluster "scluster" {
  match = { host = ["geo-a*", "geo-b*", "geo-c*", "geo-d*"] }
  capacity {
    name       = "newer nodes"
    from       = "2012-10-05"
    nodes      = 2
    components = { Cores = 12 }
    su_factor  = 1.9
  }
}

cluster "katana" {
  match = { host = ["*"] }
  capacity {
    name       = "older nodes"
    from       = "2010-01-01"
    nodes      = 4
    components = { Cores = 8 }
  }
  capacity {
    name       = "gpu nodes"
    from       = "2012-10-16"
    components = { Cores = 16, GPUs = 2 }
    su_factor  = 2.7
  }
}

cluster_group "science" { clusters = ["scluster", "katana"] }
