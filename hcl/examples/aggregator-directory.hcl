# To whom usage belongs: what `bursar directory` shows, and `bursar usage -by project`,
# `-by pi`, `-by host_class` and `-measure su` count by. The whole cluster has the same.
# Times are dates, which begin by the clock of the site's zone, or RFC 3339.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"

  # The class of hosts may be a dimension like any meta key.
  usage { dimensions = ["site_id", "group_id", "user_id", "host_class"] }
}

# The meta keys of records that name the user, the group and the host: these are the
# defaults. The columns of a file are some of user, group, project, pi, name, email,
# exempt, from and to; its path is relative to this file.
directory {
  user_key  = "user_id"
  group_key = "group_id"
  host_key  = "host"
  files     = ["people.csv"]
}

# A name and an address, for people who look at reports. What is not said here is
# taken from what sources tell.
person "bell" {
  name  = "A. Bell"
  email = "bell@example.org"
}

# With leads = ["atlas"] a person sees the records of that group, where access follows
# from the directory.
person "phys" { name = "P. Hys" }

# A project claims groups, and users whatever their group is. A group or a user that
# two projects claim at a time is an error; who is claimed by none has a line of its
# own.
project "bell-labs" {
  pi     = "bell"
  groups = ["bellgrp", "telephony"]

  # From then on; what is not written here stays as it was.
  since "2026-07-01" { groups = ["bellgrp"] }
}

project "networks" {
  pi = "huygens"
  since "2026-07-01" { groups = ["telephony"] } # has moved
  since "2026-10-01" { pi = "bell" }
}

# What an hour of a core is worth on these hosts. The first class whose pattern
# matches counts; a pattern matches anywhere in the name unless ^ and $ say otherwise.
host_class "gpu" {
  pattern = "^node-gpu"
  since "2026-03-01" { su_factor = 2.7 }
}

host_class "node" {
  pattern   = "^node-"
  su_factor = 1
  since "2026-10-01" { su_factor = 0.9 } # they have become old
}

# One service unit is a core for an hour on a host of factor 1. Sites that charge CPU
# time write seconds = { TotalCPU = 1 } in the place of components. What has neither a
# class with a factor nor a default_factor is counted apart, never as 0.
service_units {
  unit           = "SU"
  components     = { Cores = 1 }
  default_factor = 1
}

# What was put in: 12 processors of factor 1.9, of which a quarter is credited to
# somebody else. `bursar subscription` compares it with what was used.
contribution "geo nodes" {
  by        = "phys"
  amount    = 12
  split     = 75
  su_factor = 1.9
  from      = "2026-01-15"
}

contribution "geo nodes for bell" {
  by        = "phys"
  credit    = "bell"
  amount    = 12
  split     = 25
  su_factor = 1.9
  from      = "2026-01-15"
  to        = "2030-01-01"
}
