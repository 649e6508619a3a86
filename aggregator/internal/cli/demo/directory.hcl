# Demo of bursar dev: people, projects and service units. They change reports, never
# records. More: hcl/examples/aggregator-directory.hcl.

# The recording has no hosts; its partitions stand for them.
directory {
  host_key = "partition"
}

person "at00" {
  name  = "Ada Atlas"
  email = "ada@example.org"
}

person "cl02" {
  name  = "Clara Climate"
  email = "clara@example.org"
}

person "as03" {
  name  = "Astrid Astro"
  email = "astrid@example.org"
}

person "ge04" {
  name  = "Gregor Genome"
  email = "gregor@example.org"
}

person "ma05" {
  name  = "Mara Materials"
  email = "mara@example.org"
}

person "li09" {
  name  = "Lin Linguistics"
  email = "lin@example.org"
}

project "higgs" {
  pi     = "at00"
  groups = ["atlas", "cms"]
}

project "arctic-ice" {
  pi     = "cl02"
  groups = ["climate", "hydrology"]
}

project "exoplanets" {
  pi     = "as03"
  groups = ["astro"]
}

project "wheat-genome" {
  pi     = "ge04"
  groups = ["genomics", "neuro"]
}

# A principal investigator may lead several projects.
project "batteries" {
  pi     = "ma05"
  groups = ["materials", "chemistry"]
}

project "turbulence" {
  pi     = "ma05"
  groups = ["fluids"]
}

project "language-models" {
  pi     = "li09"
  groups = ["linguistics"]

  # Robotics joined later. Its usage before that belongs to no project.
  since "@JOINED@" { groups = ["linguistics", "robotics"] }
}

# What an hour of a core is worth in service units, by partition.
host_class "gpu" {
  pattern   = "^gpu$"
  su_factor = 4
}

host_class "fat" {
  pattern   = "^fat$"
  su_factor = 1.5
}

service_units {
  unit           = "SU"
  components     = { Cores = 1 }
  default_factor = 1
}

# What groups have put in, which `bursar subscription` compares with what they used.
contribution "ice nodes" {
  by        = "cl02"
  amount    = 64
  su_factor = 1
  from      = "2025-01-01"
}

contribution "genome nodes" {
  by        = "ge04"
  amount    = 48
  su_factor = 1.5
  from      = "2025-01-01"
}

contribution "physics nodes" {
  by        = "at00"
  amount    = 128
  su_factor = 1
  from      = "2025-01-01"
}
