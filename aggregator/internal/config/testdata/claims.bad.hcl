aggregator {
  name     = "agg1"
  data_dir = "/d"
}

directory { files = ["people.good.csv"] }

project "a" {
  groups = ["g"]
  since "2026-07-01" { groups = ["h"] }
  since "2026-06-01" { pi = "x" }
}

project "b" {
  groups = ["h"]
}

host_class "geo" { pattern = "^geo-[a" }

contribution "c" {
  by     = "phys"
  amount = 3
  split  = 120
}
