# Demo of bursar dev: energy and CO2, modelled from what jobs booked. More:
# hcl/examples/aggregator-energy.hcl.

energy {
  pue     = "1.35"      # what the site draws for a watt of its computers
  zone    = "DE"        # of the factors
  factors = ["co2.csv"] # a file beside this one

  class "gpu" {
    match = { partition = ["gpu"] }
    per "Cores" { watts = "6.4" }
    per "GPUs" {
      watts       = 300
      embodied_kg = 150 # the CO2 of its making, over its life
      life_years  = 5
    }
  }

  class "all" {
    per "Cores" {
      watts       = "4.6"
      idle        = "0.4" # the part that is drawn without load
      embodied_kg = "12.5"
      life_years  = 5
    }
  }
}
