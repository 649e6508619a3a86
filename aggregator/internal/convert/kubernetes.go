package convert

import (
	"strings"
)

// The queries of AUDITOR's Kubernetes collector.
const (
	auditorCPU    = `sum by (namespace, pod) (max_over_time(increase(pod_cpu_usage_seconds_total{namespace="$namespace", pod="$pod"}[$range])[$range:]))`
	auditorMemory = `sum by (namespace, pod) (max_over_time(pod_memory_working_set_bytes{namespace="$namespace", pod="$pod"}[$range]))`
)

// kubernetes converts the configuration of AUDITOR's Kubernetes collector.
func (c *conversion) kubernetes(_ *Input, t tree) error {
	b := &c.sources
	prefix := t.at("record_prefix").text()
	b.open("source", "kubernetes", label(prefix))
	b.text("interval", seconds(t.at("collect_interval")))
	b.open("config")
	b.comment("A pod is a record, with the id that AUDITOR gives it.")
	b.text("runs", "pods")
	filter := t.at("job_filter")
	namespaces := filter.at("namespace").texts()
	if len(namespaces) == 0 {
		namespaces = []string{"default"}
	}
	b.texts("namespaces", namespaces)
	b.text("labels", strings.Join(filter.at("labels").texts(), ","))
	b.text("earliest", t.at("earliest_datetime").text())
	b.attr("running", "false")
	if host := t.at("prometheus_addr").text(); host != "" {
		b.open("prometheus")
		b.text("address", "http://"+host+":"+t.at("prometheus_port").or("9090"))
		b.text("timeout", seconds(t.at("prometheus_timeout")))
		b.text("retry", seconds(t.at("backlog_interval")))
		b.attr("retries", t.at("backlog_maxretries").text())
		b.comment("AUDITOR's queries, which find nothing of runs shorter than the evaluation interval. Without cpu and memory, the greatest values of container_cpu_usage_seconds_total and container_memory_working_set_bytes count.")
		b.text("cpu", auditorCPU)
		b.text("memory", auditorMemory)
		b.close()
	}
	b.close()
	b.recordOf(identity(prefix, "${job.id}"), "job.start", "job.stop", "job.submit")
	b.attr("meta", object([]entry{{"podname", "job.pod"}, {"namespace", "job.namespace"}, {"status", "job.phase"}, {"usage", "job.usage"}}))
	kubernetesComponents(b)
	b.close()
	c.leftOver(b, t, clientSettings(map[string]string{
		"auditor_addr": "aggregators pull", "auditor_port": "aggregators pull", "auditor_timeout": "aggregators pull", "database_path": "the agent keeps its state in data_dir",
		"merge_interval": "runs are asked for as they end", "job_filter.status": "AUDITOR does not look at it either",
	}))
	b.close()
	c.changed("meta", "podname, namespace and status; no user, no group", "these and usage; add user_id = job.user and group_id = job.namespace")
	c.changed("naive_cpu_time", "of the last run of each container", "of all runs of each container")
	c.changed("memory_limit", "the sum over containers; with naive_cpu_time left out where a limit is missing", "of the pod as the scheduler has it, with init containers; each for itself")
	c.changed("start of a pod", "when the kubelet took it", "the same, or the first start of a container where that is earlier")
	c.changed("pods that are deleted while they run", "no record", "a record that ends at the deletion")
	c.changed("a record without Prometheus", "waits, and is sent incomplete after backlog_maxretries", "is sent at once with usage = pending, and completed")
	c.changed("errors of Prometheus", "the collector ends", "are tried again")
	return nil
}

// kubernetesComponents writes the components of AUDITOR's records.
func kubernetesComponents(b *body) {
	for _, x := range []struct {
		name, amount, when string
		total              bool
	}{
		{"naive_cpu_time", "floor(job.cpu_limit_seconds)", "job.cpu_limit_seconds != null", true},
		{"memory_limit", `job.limits["memory"]`, `can(job.limits["memory"])`, false},
		{"cpu", "round(job.cpu_seconds)", "job.cpu_seconds != null", true},
		{"memory", "job.memory_max_bytes", "job.memory_max_bytes != null", false},
	} {
		b.open("component", x.name)
		b.attr("amount", x.amount)
		if x.total {
			b.attr("kind", `"total"`)
		}
		b.attr("when", x.when)
		b.close()
	}
}
