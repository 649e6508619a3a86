agent {
  name     = null
  data_dir = ["/var"]
  listen   = "http://head1:7070"
  allow    = ["10.0.0.1:80", "10.0.0.2", "[::1]:http"]
  limits   = { a = "1GiB", b = "2X", "a" = "3GiB" }
  token    = ["hunter2"]
  password = env("BURSAR_TEST_UNSET")
  workers  = 1.5
  strict   = "maybe"
  since    = "yesterday"
  tags     = "one"
  mode     = "fats"
  buffer {
    max_size = "8G"
    retain   = "-30d"
  }
}

source "slurm" "nemo" {
  interval = 60
}

source "slurm" "b" {
  interval = "1 fortnight"
}

source "slurm" "c" {
  interval = uper("1m")
}

source "slurm" "d" {
  interval = file("no-such-file")
}

plugin "actoin" "priority" {
  sha256 = "12"
}

log {
  level  = "warning"
  format = "jsn"
}

metrics {
  listen = ":9100"
  path   = "metrics"
}

tls {
  ca   = "no-ca.pem"
  cert = "agent.good.hcl"
  key  = "agent.good.hcl"
}

plugin "action" "exec" {
  env = { "A B" = "c" }
}
