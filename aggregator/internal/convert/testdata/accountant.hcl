aggregator {
  name     = "agg1" # as in its certificate
  data_dir = "/var/lib/bursar"
}

# The first class counts whose pattern fits, as with ClusterAccountant.

host_class "older nodes" {
  pattern   = "^(?:^kat-)"
  su_factor = 1.0
}

host_class "newer nodes" {
  pattern   = "^(?:^geo-[a-d])"
  su_factor = 1.9
}

host_class "gpu nodes" {
  pattern   = "^(?:^kat-gpu)"
  su_factor = 2.7
}

host_class "retired nodes" {
  pattern   = "^(?:^old-)"
  su_factor = 0.5
}

service_units {
  # An hour of CPU time on a host of factor 1, or on one of no class.
  seconds        = { TotalCPU = 1 }
  default_factor = 1
}

cluster "katana" {
  match = { host = ["kat-*", "kat-gpu*", "old-*"] }

  capacity {
    name       = "older nodes"
    from       = "2010-01-01"
    nodes      = 4
    components = { Cores = 8 }
    su_factor  = 1.0
  }

  capacity {
    name       = "gpu nodes"
    from       = "2012-10-16"
    nodes      = 1
    components = { Cores = 16 }
    su_factor  = 2.7
  }
  # retired nodes, 10 nodes of 4 processors, since 2008-01-01, are disabled:
  # ClusterAccountant leaves them out of all history. With a date in to, a block capacity
  # says until when they were there.
}

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

person "bell" {
  name  = "A Bell"
  email = "bell@x"
}

person "phys" {
  name  = "P Hys"
  email = "p@x"
}

person "sagan" {
  name  = "C Sagan"
  email = "s@x"
}

person "guests" {
  name  = "G Guests"
  email = "g@x"
}

person "turing" {
  name  = "A Turing"
  email = "t@x"
}

person "darwin" {
  name  = "C Darwin"
  email = "d@x"
}

person "cas" {
  name  = "C AS"
  email = "c@x"
}

project "bellgrp" {
  pi     = "bell"
  groups = ["bellgrp"]
}

project "phys1" {
  pi     = "phys"
  groups = ["phys1"]
}

project "phys2" {
  pi     = "phys"
  groups = ["phys2"]
}

project "sagangrp" {
  pi     = "sagan"
  groups = ["sagangrp"]
}

project "guest" {
  pi     = "guests"
  groups = ["guest"]
  exempt = true
}

project "turing" {
  pi     = "turing"
  groups = ["turing"]
}

project "darwin" {
  pi     = "darwin"
  groups = ["darwin"]
}

contribution "bell kat" {
  by        = "bell"
  amount    = 12
  su_factor = 1.0
  from      = "2011-01-01"
}

contribution "phys geo-a" {
  by        = "phys"
  amount    = 12
  split     = 75
  su_factor = 1.9
  from      = "2012-10-05"
}

contribution "phys geo-a 2" {
  by        = "phys"
  credit    = "sagan"
  amount    = 12
  split     = 25
  su_factor = 1.9
  from      = "2012-10-05"
}

contribution "darwin future" {
  by        = "darwin"
  amount    = 8
  su_factor = 1.9
  from      = "2012-12-01"
}

contribution "guests kat" {
  by        = "guests"
  amount    = 8
  su_factor = 1.0
  from      = "2011-01-01"
}

# access.conf has the group chem, which is of no project.
# The group turing of a project is not in access.conf.
# bursar directory -unclaimed lists groups and users with usage that are of no project.
# tables.sql | processor_type.disabled | not in the capacity of any time | left out too; add a block capacity with from and to
# tables.sql | charge of a job | all of it at its end, CPU seconds × factor | spread over the run; -credit stop for ClusterAccountant's rule
# tables.sql | a contribution | counts in every period | counts from its date on
# tables.sql | a job number that comes again | dropped | a record of its own
