# In the place of an AUDITOR server: its collectors and plugins go on as they are,
# with this address in their configuration.

aggregator {
  name     = "accounting"
  data_dir = "/var/lib/bursar"

  api {
    listen = ["127.0.0.1:8000", "[::1]:8000"]

    # Collectors without certificates on other machines need a plain address
    # that they reach, behind a firewall that lets only them, and the names by
    # which they call it:
    #   listen             = ["10.0.0.5:8000"]
    #   allow_plain_remote = true
    #   hosts              = ["accounting.example.org"]
  }

  metrics {
    site_meta_key  = "site_id"
    group_meta_key = "group_id"
  }
}

# Collectors that have certificates (AUDITOR's use_tls) come to an api.tls_listen. This
# is for all of them at once, as in an AUDITOR without RBAC:
#   access {
#     client "*" { roles = ["monitor", "read", "write"] }
#   }

# Every user of this machine may read all records and write more, and Prometheus gets
# /metrics. Without this a plain address answers /health_check alone.
access {
  plain_role = "monitor,read,write"
}
