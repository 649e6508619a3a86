# An aggregator that writes closed records of past months to Parquet files, and keeps of
# those that are older than 13 months only what usage needs.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# Each night: months that ended a week ago, and what came late.
action "archive" "site" {
  schedule = "30 3 * * *"
  config {
    write_after         = "7d"
    remove_after_months = 13 # leave it out, and nothing is ever removed
    bucket {
      endpoint   = "https://s3.example.org"
      bucket     = "accounting"
      prefix     = "bursar"
      access_key = env("BURSAR_S3_ACCESS_KEY", "the access key") # or file("…")
      secret_key = env("BURSAR_S3_SECRET_KEY", "the secret key")
    }
  }
}

# The same months as AUDITOR writes them, for programs that read its archives.
action "archive" "auditor" {
  config {
    schema    = "auditor"
    first     = "2024-01"
    directory = "/srv/archive/auditor"
  }
}
