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

    meta = {
      site_id   = "grid"
      user_id   = job.Owner
      group_id  = job.group
      vo        = job.vo
      voms      = job.x509UserProxyFirstFQAN
      subject   = job.AuthTokenSubject
      host      = job.host
      dag       = job.DAGManJobId
      container = try(job.ad["SingularityImage"], null) # any attribute of the ad
    }

    component "Cores" {
      amount = job.cores
      score "HEPscore23" { # of the machine, by SYSTEM_JOB_MACHINE_ATTRS = HEPScore
        value = job.MachineAttrHEPScore0
        when  = job.MachineAttrHEPScore0 != null
      }
    }
    component "Memory" {
      amount = job.memory_mb
      when   = job.memory_mb != null
    }
    component "GPUs" {
      amount = job.gpus
      when   = job.gpus > 0
    }
    component "TotalCPU" {
      amount = job.cpu_seconds
      kind   = "total"
      when   = job.cpu_seconds != null
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
