price "standard" {
  currency = "EUR"
  from     = "2025-01-01"
  zone     = "Europe/Berlin"
  per "Cores" { hour = "0.010" }
  per "GPUs" {
    hour  = "1.60"
    class = "gpu"
  }
}

budget "atlas" {
  project = "bell-labs"
  period  = "year"
  zone    = "Europe/Berlin"
  amount  = "120000"
  unit    = "EUR"
}

directory {
  user_key  = "user_id"
  group_key = "group_id"
  host_key  = "host"
}

person "bell" {
  name  = "A. Bell"
  email = "bell@example.org"
}

project "bell-labs" {
  pi     = "bell"
  groups = ["atlas"]

  since "2026-07-01" { groups = ["atlas", "cms"] }
}

host_class "gpu" {
  pattern = "^node-gpu"
  since "2026-03-01" { su_factor = 2.7 }
}

service_units {
  unit           = "SU"
  components     = { Cores = 1 }
  default_factor = 1
}

contribution "geo nodes" {
  by        = "bell"
  amount    = 12
  split     = 75
  su_factor = 1.9
  from      = "2026-01-15"
}

cluster "nemo" {
  capacity {
    from       = "2019-07-01"
    to         = "2026-03-12"
    nodes      = 240
    components = { Cores = 64, Memory = 256000 }
  }
}
