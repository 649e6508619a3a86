# What `bursar import -config` takes: a source block as an agent has it. Its
# config and record blocks count; an agent's own file will do too.
#
#   bursar import ai4 -config import-ai4.hcl -dry-run /srv/ai4-accounting/snapshots

source "ai4" "ai4eosc" {
  config {
    timezone = "Europe/Madrid" # of submit_time
  }
  record {
    when = job.namespace != "tutorials"
    meta = {
      site_id  = "ifca"
      group_id = lookup({ ai4eosc = "vo.ai4eosc.eu", imagine = "vo.imagine-ai.eu", ai4life = "vo.ai4life.eu" }, job.namespace, job.namespace)
    }
  }
}
