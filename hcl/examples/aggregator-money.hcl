# What usage costs and what may be used: price lists and budgets beside the blocks of
# aggregator.hcl. The whole cluster has the same. `bursar prices` shows what holds,
# `bursar budgets` how budgets stand; `bursar usage -measure cost` values any usage.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# Lists of one name follow each other: this one ends where the next begins. Dates
# are those of the zone. Numbers are kept exactly, with up to 9 digits after the point.
price "standard" {
  currency = "EUR"
  from     = "2025-01-01"
  zone     = "Europe/Berlin"
  per "Cores" { hour = "0.010" }     # an amount of one for an hour
  per "Memory" { hour = "0.000002" } # in the unit of the records: here of a MB
}

price "standard" {
  currency = "EUR"
  from     = "2026-01-01"
  zone     = "Europe/Berlin"
  per "Cores" { hour = "0.012" }
  per "Memory" { hour = "0.000002" }
  per "TotalCPU" { unit = "0.00000001" } # a total: one of it, here a CPU second

  # The most specific price counts: one for a group before one for a project, before
  # one for a principal investigator, before one for all; of these the one with the
  # most conditions.
  per "GPUs" { hour = "0.90" }
  per "GPUs" {
    hour  = "1.60"
    class = "h100" # a class of hosts
  }
  per "Cores" {
    hour  = "0.006"
    match = { qos = "low" } # any key
  }
  per "Cores" {
    hour  = 0
    group = "physics" # paid for its nodes
    class = "physics"
  }
}

# Each year anew, by the zone's clock.
budget "atlas" {
  project = "atlas" # or group, or pi, or match = { key = "value" }; all that are written
  period  = "year"  # day, week, month, quarter, year
  zone    = "Europe/Berlin"
  amount  = "120000"
  unit    = "EUR"
  pace    = "14d" # over what the present pace is measured; the default is 30d
}

# Once, in hours of a component. core-hours are those of Cores; SU are service units.
budget "curie-gpus" {
  pi        = "curie"
  from      = "2026-03-01"
  to        = "2026-09-01"
  amount    = 50000
  unit      = "hours"
  component = "GPUs"
}

budget "cms" {
  group  = "cms"
  period = "quarter"
  amount = 2500000
  unit   = "core-hours"
}
