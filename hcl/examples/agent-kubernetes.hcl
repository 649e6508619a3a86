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
    # These keys and components are added to those of the default mapping; null leaves a
    # key out.
    meta = {
      site_id  = "k8s"
      group_id = try(job.namespace_labels["team"], job.namespace)
      cron_job = null
    }
    component "nvidia.com/mig-1g.5gb" {
      amount = try(job.extended["nvidia.com/mig-1g.5gb"], 0)
      when   = try(job.extended["nvidia.com/mig-1g.5gb"] > 0, false)
    }
  }
}
