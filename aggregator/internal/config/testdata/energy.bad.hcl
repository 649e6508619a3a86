aggregator {
  name     = "a"
  data_dir = "/d"
}

energy {
  pue     = "0.9"
  factors = ["energy.bad.csv", "missing.csv"]
  class "a" {
    match = { host = [] }
    pue   = 20
    per "GPUs" {
      watts = 300
      idle  = "0.2"
    }
    per "Memory" {
      watts = 1
      busy  = "TotalCPU"
    }
    per "Cores" {
      watts       = "2000000"
      idle        = 2
      embodied_kg = 3
    }
  }
  class "b" {
    per "Cores" { amount = 0 }
  }
}
