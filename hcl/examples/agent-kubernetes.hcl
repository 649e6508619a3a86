# What ran on a Kubernetes cluster. `source "kubernetes" "k8s" {}` alone is right where the
# agent is a pod with the service account of plugins/source/kubernetes/deploy; everything
# below is optional.

agent {
  name     = "k8s-agent"
  data_dir = "/var/lib/bursar-agent"
}

source "kubernetes" "k8s" {
  config {
    kubeconfig = "/etc/bursar/kubeconfig"
    context    = "production"

    exclude_namespaces = ["kube-*", "monitoring"]
    labels             = "tier!=internal"

    runs    = "containers" # or "pods", with the ids of AUDITOR's collector
    user    = ["accounting/user", "hub.jupyter.org/username"]
    project = ["accounting/project"]

    finalizer = false # true: no pod vanishes while the agent is away; see the README for the risk

    prometheus {
      address    = "https://prometheus.example.org:9090"
      token_file = "/etc/bursar/prometheus.token"
      ca         = "/etc/bursar/prometheus-ca.pem"
    }
  }

  record {
    meta = {
      site_id   = "k8s"
      user_id   = job.user
      group_id  = try(job.namespace_labels["team"], job.namespace)
      project   = job.project
      pod       = job.pod
      container = job.container
      workflow  = job.workflow
      gpu_model = job.gpu_model
      usage     = job.usage
      estimated = job.estimated ? "true" : null
    }
    component "MilliCores" {
      amount = job.cpu_millicores
      when   = try(job.cpu_millicores > 0, false)
    }
    component "Memory" {
      amount = job.memory_mb
      when   = try(job.memory_mb > 0, false)
    }
    component "GPUs" {
      amount = job.gpus
      when   = try(job.gpus > 0, false)
    }
    component "nvidia.com/mig-1g.5gb" {
      amount = try(job.extended["nvidia.com/mig-1g.5gb"], 0)
      when   = try(job.extended["nvidia.com/mig-1g.5gb"] > 0, false)
    }
    component "TotalCPU" {
      amount = job.cpu_seconds
      kind   = "total"
      when   = job.cpu_seconds != null
    }
  }
}
