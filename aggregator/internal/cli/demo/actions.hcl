# Demo of bursar dev: an action. More: hcl/examples/aggregator-actions.hcl.

# Every ten minutes it publishes a report in a folder, as a static site: open index.html there.
action "report" "demo" {
  schedule = "10m"
  config {
    report = "usage"
    period = ["this-month", "last-month"]
    query  = { by = "group_id" }
    site {
      directory = "@SITE@"
      title     = "Usage of the recorded clusters"
    }
  }
}
