# An aggregator that posts to a receiver of the site's own: each record that has
# changed, and what every group has used in the month before.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# When records have changed, at most every five minutes. The receiver keeps for each
# record what has the greatest seq, and knows a second post by its Idempotency-Key:
# plugins/action/webhook/README.md has the rules, and how to verify the signature.
action "webhook" "mirror" {
  schedule = "@change 5m"
  config {
    url    = "https://billing.example.org/bursar/changes"
    secret = env("BURSAR_WEBHOOK", "write a long secret here") # or file("…"); openssl rand -hex 32
    input  = "changes"
    batch  = 1000
  }
}

action "webhook" "invoices" {
  schedule = "30 6 1 * *" # on the first of each month
  zone     = "Europe/Berlin"
  config {
    url    = "https://billing.example.org/bursar/usage"
    method = "PUT"

    # While the receiver changes from one secret to another, both sign.
    secret = [env("BURSAR_WEBHOOK_NEW", "write a long secret here"), env("BURSAR_WEBHOOK_OLD", "write a long secret here")]

    headers = {
      Authorization = "Bearer ${env("BURSAR_WEBHOOK_TOKEN", "token")}"
    }
    tls {
      ca   = "/etc/bursar/billing-ca.pem"
      cert = "/etc/bursar/tls/billing.pem"
      key  = "/etc/bursar/tls/billing.key"
    }
    proxy = "http://proxy.example.org:3128"

    input = "usage"
    usage {
      window  = "last-month"
      by      = ["group_id"]
      measure = ["Cores", "Memory"]
      unit    = "hour"
    }
  }
}
