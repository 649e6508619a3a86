agent {
  name     = "head1" # as in its certificate
  data_dir = "/var/lib/bursar-agent"

  # Aggregators pull by mutual TLS. On the machine of the authority:
  #   bursar tls cert create -role agent -name head1 -host head1.example.org
  # tls {
  #   ca   = "/etc/bursar/tls/ca.pem"
  #   cert = "/etc/bursar/tls/head1.pem"
  #   key  = "/etc/bursar/tls/head1.key"
  # }
}

source "kubernetes" "KUBE" {
  interval = "30s"

  config {
    # A pod is a record, with the id that AUDITOR gives it.
    runs       = "pods"
    namespaces = ["default", "batch"]
    labels     = "app==test,tier=batch"
    earliest   = "2024-04-18T12:00:00Z"
    running    = false

    prometheus {
      address = "http://prometheus.example.org:31000"
      timeout = "1m30s"
      retry   = "5m"
      retries = 2
      # AUDITOR's queries, which find nothing of runs shorter than the evaluation interval.
      # Without cpu and memory, the greatest values of container_cpu_usage_seconds_total and
      # container_memory_working_set_bytes count.
      cpu    = "sum by (namespace, pod) (max_over_time(increase(pod_cpu_usage_seconds_total{namespace=\"$namespace\", pod=\"$pod\"}[$range])[$range:]))"
      memory = "sum by (namespace, pod) (max_over_time(pod_memory_working_set_bytes{namespace=\"$namespace\", pod=\"$pod\"}[$range]))"
    }
  }

  record {
    # AUDITOR's keys and components alone, without those of the default mapping.
    defaults    = false
    id          = "${source.label}-${job.id}"
    start       = job.start
    stop        = job.stop
    submit      = job.submit
    state       = job.state
    exit_code   = job.exit_code
    exit_signal = job.exit_signal
    meta = {
      podname   = job.pod
      namespace = job.namespace
      status    = job.phase
      usage     = job.usage
    }

    component "naive_cpu_time" {
      amount = floor(job.cpu_limit_seconds)
      kind   = "total"
      when   = job.cpu_limit_seconds != null
    }

    component "memory_limit" {
      amount = job.limits["memory"]
      when   = can(job.limits["memory"])
    }

    component "cpu" {
      amount = round(job.cpu_seconds)
      kind   = "total"
      when   = job.cpu_seconds != null
    }

    component "memory" {
      amount = job.memory_max_bytes
      when   = job.memory_max_bytes != null
    }
  }
  # auditor_addr: localhost: aggregators pull
  # auditor_port: 8000: aggregators pull
  # database_path: /var/lib/auditor-kubernetes-collector/: the agent keeps its state in
  # data_dir
  # job_filter.status: [completed]: AUDITOR does not look at it either
  # auditor_timeout: 10: aggregators pull
  # merge_interval: 60: runs are asked for as they end
  # log_level: debug: see log { level } in the block agent; AUDITOR's trace is debug
  # tls_config: {use_tls: false}: agents and aggregators have certificates of bursar tls;
  # see the block tls
}
# kubernetes.yml | meta | podname, namespace and status; no user, no group | these and usage; add user_id = job.user and group_id = job.namespace
# kubernetes.yml | naive_cpu_time | of the last run of each container | of all runs of each container
# kubernetes.yml | memory_limit | the sum over containers; with naive_cpu_time left out where a limit is missing | of the pod as the scheduler has it, with init containers; each for itself
# kubernetes.yml | start of a pod | when the kubelet took it | the same, or the first start of a container where that is earlier
# kubernetes.yml | pods that are deleted while they run | no record | a record that ends at the deletion
# kubernetes.yml | a record without Prometheus | waits, and is sent incomplete after backlog_maxretries | is sent at once with usage = pending, and completed
# kubernetes.yml | errors of Prometheus | the collector ends | are tried again
