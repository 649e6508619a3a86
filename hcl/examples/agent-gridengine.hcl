# The jobs of Grid Engine. `source "gridengine" "katana" {}` alone is right where
# Grid Engine is in a usual place; everything below is optional.

agent {
  name     = "katana-master"
  data_dir = "/var/lib/bursar-agent"
}

source "gridengine" "katana" {
  interval = "1m"

  config {
    sge_root = "/opt/sge"
    commands = "/opt/sge/bin/lx-amd64"
    rotated  = ["/srv/archive/sge/accounting-*.gz"] # beside those next to the file
    projects = ["astro", "bio"]
    earliest = "2024-01-01"

    # Jobs ask for memory by these, for each slot.
    memory_requests = ["h_vmem", "mem_free"]
    memory_per      = "slot"

    # And for GPUs by these, once for the whole job.
    gpu_requests = ["gpu", "ngpus"]
    gpu_per      = "job"
  }

  record {
    id   = "${source.label}-${job.id}"
    when = job.owner != "healthcheck"

    # These keys and components are added to those of the default mapping; null leaves a
    # key out.
    meta = {
      job_id     = job.job_id
      department = null
    }
    component "Licenses" { # a consumable of this site, for each slot
      amount = try(job.requests["matlab"] * job.slots, 0)
      when   = try(job.requests["matlab"] > 0 && !job.slave, false)
    }
  }
}

# Two cells of one Grid Engine: job.qualified_id has the cell's name in it.
source "gridengine" "campus" {
  config {
    sge_root = "/opt/sge"
    cell "default" {}
    cell "teaching" { path = "/srv/teaching/accounting" }
  }
  record {
    id = "${source.label}-${job.qualified_id}"
    meta = {
      site_id  = job.cell
      user_id  = job.owner
      group_id = job.group
    }
  }
}
