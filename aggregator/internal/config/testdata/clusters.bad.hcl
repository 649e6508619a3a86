aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

cluster "nemo" {
  match     = { site_id = [] }
  sources   = ["head1/slurm", "head1/slurm/nemo"]
  zone      = "Europe/Belin"
  su_factor = 0
  capacity {
    from       = "2026-13-01"
    components = { Cores = -1 }
  }
  capacity {
    from       = "2026-03-02"
    to         = "2026-03-01"
    components = {}
    nodes      = -2
    su_factor  = 0.0000000001
  }
  capacity {
    components = { su = 1 }
  }
}

cluster "a,b" {
  match   = {}
  sources = ["head1/slurm/nemo"]
}

cluster_group "grid" {
  clusters = ["nemo", "south"]
  groups   = ["south", "west"]
}

cluster_group "south" { groups = ["east"] }

cluster_group "east" {
  clusters = ["nemo"]
  groups   = ["south"]
}

cluster_group "nemo" {}
