# Demo of bursar dev, for the agent: the recorded clusters. All else in this folder is for
# the aggregator. More: plugins/source/replay/README.md.

source "replay" "recorded" {
  interval = "2s"
  config {
    recorded = true
    history  = "63d" # so that there is all of the last month
    jobs     = 30000
    missed   = 3 # jobs of one day, on which collecting failed
  }
}
