aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

price "standard" {
  currency = "EUR"
  to       = "2026-01-01"
  zone     = "Europe/Berlin"
  per "Cores" { hour = 0.01 }
}

price "standard" {
  currency = "EUR"
  from     = "2026-01-01"
  zone     = "Europe/Berlin"
  per "Cores" { hour = "0.012" }
  per "Cores" {
    hour  = 0.03
    class = "gpu"
  }
  per "Cores" {
    hour  = 0
    group = "physics"
    match = { qos = "low" }
  }
  per "TotalCPU" { unit = 2 * 0.00005 }
}

budget "atlas" {
  project = "atlas"
  period  = "quarter"
  zone    = "Europe/Berlin"
  amount  = "120000.50"
  unit    = "EUR"
  pace    = "14d"
}

budget "gpus" {
  pi        = "curie"
  match     = { site_id = "nemo" }
  from      = "2026-03-01T12:00:00+01:00"
  to        = "2027"
  amount    = 5e6
  unit      = "hours"
  component = "GPUs"
}
