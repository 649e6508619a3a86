aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  waiting_stops {
    expire_after = "1h"
  }
}

component "cpu" { kind = "sum" }
component " " { kind = "total" }
component "joules" {}
component "bytes" { kind = "total" }
component "bytes" { kind = "rate" }
