aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

price "standard" {
  currency = "EUR"
  from     = "last-year"
  zone     = "Europe/Belin"
  per "Cores" { hour = 1 / 3 }
  per "Memory" {}
  per "Cores" {
    hour = "1,5"
    unit = 2
  }
}

budget "atlas" {
  project = "atlas"
  period  = "yearly"
  unit    = "EUR"
  pace    = "fast"
}
