# What clusters have, and since when, so that `bursar usage -measure utilization` can
# say how much of it was used, and `bursar capacity` what is there.
#
# None of this is needed where a source says what its cluster has, as that of Slurm
# does: then there is a cluster for each source, named by its label. A block says
# more: for the time before, for a source that cannot say it, or with other records.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# Without match the records are those with site_id = "nemo", and the sources those
# with the label nemo. What is written here counts where it says something, for its
# times and components; what the sources say counts elsewhere.
cluster "nemo" {
  capacity {
    name       = "before Slurm was asked"
    from       = "2019-07-01"
    to         = "2026-03-12" # the first day on which it does not count any more
    nodes      = 240
    components = { Cores = 64, Memory = 256000 } # of one node
  }
}

# A record belongs to the first cluster, in the order of the files, that takes it. The
# first value of every key must be one of the list, in which * is any text. Blocks
# capacity add up: nodes come and go at their dates, which begin by the clock of zone.
cluster "katana-gpu" {
  match = { site_id = ["katana"], host = ["gpu-*", "kat-gpu*"] }
  zone  = "Australia/Sydney"
  capacity {
    name       = "A100 nodes"
    from       = "2024-02-01"
    nodes      = 8
    components = { Cores = 32, GPUs = 4, "GPUs:a100" = 4 }
    su_factor  = 2.7 # service units that a core is worth in an hour
  }
  capacity {
    name       = "H100 nodes"
    from       = "2025-09-15"
    nodes      = 4
    components = { Cores = 64, GPUs = 8, "GPUs:h100" = 8 }
    su_factor  = 4
  }
}

cluster "katana" {
  match     = { site_id = "katana" }
  sources   = ["kat-head/gridengine/katana"] # whose word about capacity counts; [] is nobody's
  su_factor = 1.9                            # where a block says none
  capacity {
    from       = "2012-10-05"
    nodes      = 24
    components = { Cores = 12, Memory = 96000 }
  }
}

# A name for several clusters, each of which counts once: where[cluster]=south in
# questions, and a line in `bursar capacity`.
cluster_group "south" { clusters = ["katana", "katana-gpu"] }

cluster_group "all" {
  clusters = ["nemo"]
  groups   = ["south"]
}
