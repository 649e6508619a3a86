package job

// Mapping is the default mapping: records like those of AUDITOR's collector.
const Mapping = `id          = "${source.label}-${job.qualified_id}"
start       = job.Start
stop        = job.End
submit      = job.Submit
state       = job.state
exit_code   = job.exit_code
exit_signal = job.exit_signal
meta = {
  site_id   = source.label
  user_id   = job.user
  group_id  = job.group
  account   = job.Account
  partition = job.Partition
  qos       = job.QOS
  cluster   = job.cluster
  job_name  = job.JobName
  gpu_model = job.gpu_model

  # Of running jobs only: what they may still use is reserved in budgets.
  time_limit = job.End == null ? job.time_limit_seconds : null
}
component "Cores" {
  amount = job.AllocCPUS
}
component "Memory" {
  amount = job.memory_mb
  when   = job.memory_mb != null
}
component "TotalCPU" { # as Jobstats measured it, else as sacct has it
  amount = coalesce(job.jobstats_cpu_seconds, job.cpu_seconds)
  kind   = "total"
  when   = job.jobstats_cpu_seconds != null || job.cpu_seconds != null
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
component "GPUs:*" { # of each type, as in the capacity
  amounts = job.gpus_by_type
}
component "MilliGPUs" { # of jobs with slices, shards or shares by MPS; 1000 for a whole card
  amount = job.milli_gpus
  when   = try(job.partial_gpus && job.milli_gpus > 0, false)
}
component "MemoryUsed" {
  amount = job.jobstats_memory_mb
  when   = job.jobstats_memory_mb != null
}
component "TotalGPU" {
  amount = job.jobstats_gpu_seconds
  kind   = "total"
  when   = job.jobstats_gpu_seconds != null
}
component "GPUMemory" { # that the job's GPUs have
  amount = job.jobstats_gpu_total_memory_mb
  when   = job.jobstats_gpu_total_memory_mb != null
}
component "GPUMemoryUsed" { # the peak
  amount = job.jobstats_gpu_memory_mb
  when   = job.jobstats_gpu_memory_mb != null
}
`
