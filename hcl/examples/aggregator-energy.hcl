# How energy and CO2 follow from records: the block energy beside the blocks of
# aggregator.hcl. The whole cluster has the same, with what the files say.
# `bursar usage -measure energy,energy_measured,energy_modelled,co2` shows the figures.

aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

energy {
  component = "Energy"    # the total of joules that records may carry; this is the default
  pue       = "1.35"      # what the site draws for a watt of its computers
  zone      = "DE"        # of the factors
  factors   = ["co2.csv"] # zone, from, to, g_per_kwh

  # A file with other columns, which are chosen by name; times without a zone are UTC.
  # factor_file {
  #   path    = "DE_2026_hourly.csv"
  #   zone    = "DE" # of all rows; beside a column of zones, of the rows that count; or columns.zone
  #   columns = { from = "Datetime (UTC)", g_per_kwh = "Carbon intensity gCO₂eq/kWh (direct)" }
  # }
  # The yearly file of Our World in Data: Entity, Code, Year, Carbon intensity of electricity.
  # factor_file {
  #   path   = "carbon-intensity-electricity.csv"
  #   format = "owid"
  #   entity = "Germany" # or its code, DEU
  #   zone   = "DE"
  # }

  # What the site draws, from a meter's file: energy_idle is what no job has of it. The energy
  # is a column kwh, wh, mwh or joules; meters of different names add up.
  # meter "hall" {
  #   path    = "meter-2026.csv"
  #   columns = { from = "Timestamp", kwh = "Active energy" }
  # }

  since "2026-01-01" { pue = "1.28" } # from then on; a class may have such blocks too

  # A record is in the first class that takes it. match is as that of a cluster: first values of
  # meta keys, in which * is any text, or host_class.
  class "gpu" {
    match = { host = ["gpu*"] }
    per "Cores" {
      watts = "6.4"
      idle  = "0.4" # the part that is drawn without load; TotalCPU says how long there was load
    }
    per "Memory" {
      watts  = "0.3725"
      amount = 1000 # of so many: records have MB here
    }
    per "GPUs" {
      watts       = 300
      embodied_kg = 150 # the CO2 of its making, over its life
      life_years  = 5
    }
  }
  class "hydro" {
    match = { site_id = ["lyon"] }
    pue   = "1.1"
    zone  = "FR"
    per "Cores" { watts = "4.6" }
  }
  class "all" {
    per "Cores" {
      watts       = "4.6"
      embodied_kg = "12.5"
      life_years  = 5
    }
    per "Memory" {
      watts  = "0.3725"
      amount = 1000
    }
  }
}

# With a block energy, energy and co2 have prices as components have: of a kWh and of a kg CO2e.
price "power" {
  currency = "EUR"
  per "energy" { unit = "0.28" }
  per "co2" { unit = "0.08" }
}

budget "atlas-power" {
  group  = "atlas"
  period = "year"
  amount = 250000
  unit   = "kWh" # or kg CO2e
}

# Each month a file by user and group, and the same by mail.
action "energy" "monthly" {
  config {
    by        = ["user_id", "group_id"]
    directory = "/srv/utilization"
    to        = ["head@example.org"]
    mail {
      from = "Accounting <accounting@example.org>"
      host = "smtp.example.org"
    }
  }
}
