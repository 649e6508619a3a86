
# What the recorded clusters have, what they cost, and to whom they belong.

cluster "aurora" {
  sources = []
  capacity {
    components = { Cores = 1152, GPUs = 48 }
  }
}

cluster "breeze" {
  sources = []
  capacity {
    components = { Cores = 960, GPUs = 32 }
  }
}

cluster "cirrus" {
  sources = []
  capacity {
    components = { Cores = 960, GPUs = 0 }
  }
}

price "standard" {
  currency = "EUR"
  from     = "2020-01-01"
  per "Cores" { hour = "0.012" }
  per "Memory" { hour = "0.000002" }
  per "GPUs" { hour = "0.90" }
}

person "at00" {
  name  = "Ada Atlas"
  email = "ada@example.org"
}

person "cl02" {
  name  = "Clara Climate"
  email = "clara@example.org"
}

person "ge04" {
  name  = "Gregor Genome"
  email = "gregor@example.org"
}

project "higgs" {
  pi     = "at00"
  groups = ["atlas", "cms"]
}

project "arctic-ice" {
  pi     = "cl02"
  groups = ["climate", "hydrology"]
}

project "wheat-genome" {
  pi     = "ge04"
  groups = ["genomics"]
}

budget "higgs" {
  project = "higgs"
  from    = "BEGIN"
  to      = "END"
  amount  = "40000"
  unit    = "EUR"
}

budget "arctic-ice" {
  project = "arctic-ice"
  from    = "BEGIN"
  to      = "END"
  amount  = "6500"
  unit    = "EUR"
}

budget "wheat-genome" {
  project = "wheat-genome"
  from    = "BEGIN"
  to      = "END"
  amount  = "120000"
  unit    = "core-hours"
}
