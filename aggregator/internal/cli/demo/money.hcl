# Demo of bursar dev: prices and budgets. More: hcl/examples/aggregator-money.hcl.

# Lists of one name follow each other: cores became dearer four weeks ago.
price "standard" {
  currency = "EUR"
  from     = "2020-01-01"
  per "Cores" { hour = "0.010" }
  per "Memory" { hour = "0.000002" } # for each MB
  per "GPUs" { hour = "0.90" }
}

price "standard" {
  currency = "EUR"
  from     = "@BEGIN@"
  per "Cores" { hour = "0.012" }
  per "Memory" { hour = "0.000002" }
  per "GPUs" { hour = "0.90" }
  per "Cores" {
    hour  = "0.006" # what is left over is cheap
    match = { partition = "opportunistic" }
  }
}

# Half of its time is over, and less than half is used.
budget "higgs" {
  project = "higgs"
  from    = "@BEGIN@"
  to      = "@END@"
  amount  = "30000"
  unit    = "EUR"
}

# Overspent.
budget "arctic-ice" {
  project = "arctic-ice"
  from    = "@BEGIN@"
  to      = "@END@"
  amount  = "4000"
  unit    = "EUR"
}

# At this pace it will be used up before its end.
budget "wheat-genome" {
  project = "wheat-genome"
  from    = "@BEGIN@"
  to      = "@END@"
  amount  = "160000"
  unit    = "core-hours"
}

budget "language-models" {
  project   = "language-models"
  from      = "@BEGIN@"
  to        = "@END@"
  amount    = "6000"
  unit      = "hours"
  component = "GPUs"
}

# Each year anew.
budget "atlas" {
  group  = "atlas"
  period = "year"
  amount = "2500000"
  unit   = "SU"
}
