# An aggregator that copies all closed records, with their sums by day, to a ClickHouse that
# several sites share. plugins/action/warehouse/README.md has the tables and what to ask them.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# Five minutes after a change at the latest. All sites of the database have the same
# dimensions, components and zone.
action "warehouse" "national" {
  config {
    url           = "https://ch1.example.org:8443" # of the shard that keeps this site
    user          = "bursar"
    password_file = "/etc/bursar/clickhouse.password"
    ca            = "/etc/bursar/clickhouse-ca.pem"
    cluster       = "shards" # of remote_servers: ledger_all, daily_all and monthly_all read all sites
    dimensions    = ["group_id", "user_id", "voms"]
    components    = ["Cores", "Memory", "TotalCPU"]
    zone          = "Europe/Berlin"
  }
}
