# The jobs of HTCondor. `source "htcondor" "grid" {}` alone is right on a machine with a
# schedd whose history is in a usual place; everything below is optional.

agent {
  name     = "submit1"
  data_dir = "/var/lib/bursar-agent"
}

source "htcondor" "grid" {
  interval = "1m"

  config {
    history   = "/var/lib/condor/spool/history"
    epochs    = "/var/lib/condor/spool/epoch_history"
    universes = ["vanilla", "parallel", "local"] # without DAGMan, which is in scheduler
    earliest  = "2024-01-01"
    open      = true # jobs that run now, by condor_q
  }

  record {
    id   = "${source.label}-${job.id}"
    when = job.Owner != "healthcheck"

    # These keys and components are added to those of the default mapping; null leaves a
    # key out.
    meta = {
      site_id   = "grid"
      voms      = job.x509UserProxyFirstFQAN
      subject   = job.token_subject
      dag       = job.DAGManJobId
      container = try(job.ad["SingularityImage"], null) # any attribute of the ad
    }

    component "Cores" { # the amount is the default's
      score "HEPscore23" { # of the machine, by SYSTEM_JOB_MACHINE_ATTRS = HEPScore
        value = job.MachineAttrHEPScore0
        when  = job.MachineAttrHEPScore0 != null
      }
    }
  }
}

# Schedds of two pools through commands, from one machine.
source "htcondor" "campus" {
  config {
    through    = "commands"
    pool       = "cm.example.org"
    constraint = "AcctGroup =!= \"group_test\""
    schedd "submit2.example.org" {}
    schedd "submit3.example.org" {}
    schedd "ce@ce1.example.org" { pool = "cm2.example.org:9618" }
  }
}
