aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

price "standard" {
  currency = "EUR"
  per "Cores" { hour = "0.012" }
  per "Cores" {
    hour  = "0.012"
    class = "gpu"
  }
  per "Cores" {
    hour  = 2000000000
    match = { qos = "low" }
  }
}

price "standard" {
  currency = "EUR"
  from     = "2026"
  to       = "2025"
  per "Cores" { hour = "0.013" }
}

price "america" {
  currency = "USD"
  from     = "2027"
  per "Memory" { hour = "0.013" }
  per "Cores" { hour = 1 }
}

budget "nobody" {
  period = "year"
  amount = 1
  unit   = "EUR"
}

budget "dollars" {
  group  = "a"
  period = "year"
  amount = 1
  unit   = "USD"
}

budget "often" {
  group  = "a"
  pi     = ""
  match  = { group_id = "b" }
  period = "hour"
  amount = 0
  unit   = "hours"
  pace   = "1h"
}

budget "once" {
  group     = "a"
  from      = "2026"
  amount    = 1
  unit      = "SU"
  component = "Cores"
}
