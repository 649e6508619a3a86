# Jobs from files: one that a script writes, and the recorded cluster of
# `bursar dev`. Each source below has its own checkpoint.

agent {
  name     = "head1"
  data_dir = "/var/lib/bursar-agent"
}

# A file of JSON lines, one job a line:
#   {"id":"17","start":"2026-01-02T03:04:05Z","stop":1767330000,"user":"ann","cpus":4}
# It may grow, rotate and end in half a line.
source "replay" "lab" {
  interval = "10s"
  config {
    path = "/var/log/lab/jobs.ndjson"
  }
  record {
    meta = {
      site_id = "lab"
      project = try(job.fields.project, null) # any other key of the line
    }
  }
}

# A lively made-up cluster, the same for the same seed.
source "replay" "demo" {
  interval = "1s"
  config {
    recorded = true
    seed     = 1
    history  = "28d"
    jobs     = 20000
    speed    = 1.0
  }
}
