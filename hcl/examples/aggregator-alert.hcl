# An aggregator that tells people and programs what needs attention, and when it is over.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# The default rules, to the administrators by mail and to an Alertmanager; what is critical
# also to a chat.
action "alert" "site" {
  config {
    defaults = true
    without  = ["utilization-high"]
    url      = "https://bursar.example.org"
    zone     = "Europe/Berlin"

    receiver "admins" {
      to = ["Administrators <admins@example.org>"]
      mail {
        from = "bursar <bursar@example.org>"
        host = "localhost" # the mail server of this machine
        tls  = "none"
      }
    }
    receiver "alertmanager" {
      alertmanager {
        url    = "http://localhost:9093"
        labels = { site = "nemo" }
      }
    }
    receiver "chat" {
      severity = ["critical"]
      webhook {
        url      = "https://chat.example.org/hooks/bursar"
        unsigned = true # or secret = file("/etc/bursar/alert.secret")
      }
    }
  }
}

# Rules of your own: a budget that will not last, GPUs of a cluster that are idle, and who used
# far more or less than the share that the contributions give.
action "alert" "finance" {
  schedule = "15m"
  config {
    rule "atlas-overdraws" {
      budget   = "atlas"
      forecast = 110 # per cent at the end of the period
      severity = "warning"
    }
    rule "idle-gpus" {
      usage {
        measure = "utilization*GPUs"
        window  = "7d"
        by      = "cluster"
        below   = 0.3
      }
      for     = "1d"
      runbook = "https://wiki.example.org/idle-gpus"
    }
    rule "share" {
      share {
        above = 2 # twice the share
        below = 0.5
        over  = "7d"
      }
      for = "1d"
    }
    receiver "finance" {
      to = ["finance@example.org"]
      mail {
        from = "bursar <bursar@example.org>"
        host = "localhost"
        tls  = "none"
      }
    }
  }
}
