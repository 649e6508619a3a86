# Demo of bursar dev: what the three recorded clusters have, so that utilization can be
# shown. More: hcl/examples/aggregator-clusters.hcl.

cluster "aurora" {
  sources = [] # the recording does not report what its clusters have
  capacity {
    components = { Cores = 960, GPUs = 48 }
  }
}

cluster "breeze" {
  sources = []
  capacity {
    components = { Cores = 800, GPUs = 32 }
  }
}

cluster "cirrus" {
  sources = []
  capacity {
    components = { Cores = 960, GPUs = 0 }
  }
}
