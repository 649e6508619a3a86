aggregator {
  name     = "agg1"
  data_dir = "/d"
}

directory { files = ["people.bad.csv", "none.csv"] }

project "a" {
  pi     = "bell"
  groups = ["g"]
  since "2026-13-01" { pi = "x" }
}

project "b" {
  since "2026-07-01" { grups = ["g"] }
}

host_class "geo" {
  pattern   = "^geo-[a"
  su_factor = "1,9"
}

contribution "c" {
  by     = "phys"
  amount = -3
}

service_units { components = { Cores = "one" } }
