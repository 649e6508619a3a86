package convert

import (
	"strings"
)

// The queries of AUDITOR's Kubernetes collector.
const (
	auditorCPU    = `sum by (namespace, pod) (max_over_time(increase(pod_cpu_usage_seconds_total{namespace="$namespace", pod="$pod"}[$range])[$range:]))`
	auditorMemory = `sum by (namespace, pod) (max_over_time(pod_memory_working_set_bytes{namespace="$namespace", pod="$pod"}[$range]))`
)

// convertKubernetes converts the configuration of AUDITOR's Kubernetes collector.
func (c *conversion) convertKubernetes(_ *Input, t tree) error {
	b := &c.sources
	prefix := t.subtree("record_prefix").plainText()
	b.openBlock("source", "kubernetes", sourceLabel(prefix))
	b.writeText("interval", secondsExpression(t.subtree("collect_interval")))
	b.openBlock("config")
	b.writeComment("A pod is a record, with the id that AUDITOR gives it.")
	b.writeText("runs", "pods")
	filter := t.subtree("job_filter")
	namespaces := filter.subtree("namespace").listTexts()
	if len(namespaces) == 0 {
		namespaces = []string{"default"}
	}
	b.writeTexts("namespaces", namespaces)
	b.writeText("labels", strings.Join(filter.subtree("labels").listTexts(), ","))
	b.writeText("earliest", t.subtree("earliest_datetime").plainText())
	b.writeAttribute("running", "false")
	if host := t.subtree("prometheus_addr").plainText(); host != "" {
		b.openBlock("prometheus")
		b.writeText("address", "http://"+host+":"+t.subtree("prometheus_port").textOr("9090"))
		b.writeText("timeout", secondsExpression(t.subtree("prometheus_timeout")))
		b.writeText("retry", secondsExpression(t.subtree("backlog_interval")))
		b.writeAttribute("retries", t.subtree("backlog_maxretries").plainText())
		b.writeComment("AUDITOR's queries, which find nothing of runs shorter than the evaluation interval. Without cpu and memory, the greatest values of container_cpu_usage_seconds_total and container_memory_working_set_bytes count.")
		b.writeText("cpu", auditorCPU)
		b.writeText("memory", auditorMemory)
		b.closeBlock()
	}
	b.closeBlock()
	b.recordOf(idExpression(prefix, "${job.id}"), "job.start", "job.stop", "job.submit")
	b.writeAttribute("meta", objectExpression([]entry{{"podname", "job.pod"}, {"namespace", "job.namespace"}, {"status", "job.phase"}, {"usage", "job.usage"}}))
	kubernetesComponents(b)
	b.closeBlock()
	c.leftOver(b, t, clientSettings(map[string]string{
		"auditor_addr": "aggregators pull", "auditor_port": "aggregators pull", "auditor_timeout": "aggregators pull", "database_path": "the agent keeps its state in data_dir",
		"merge_interval": "runs are asked for as they end", "job_filter.status": "AUDITOR does not look at it either",
	}))
	b.closeBlock()
	c.noteChanged("meta", "podname, namespace and status; no user, no group", "these and usage; add user_id = job.user and group_id = job.namespace")
	c.noteChanged("naive_cpu_time", "of the last run of each container", "of all runs of each container")
	c.noteChanged("memory_limit", "the sum over containers; with naive_cpu_time left out where a limit is missing", "of the pod as the scheduler has it, with init containers; each for itself")
	c.noteChanged("start of a pod", "when the kubelet took it", "the same, or the first start of a container where that is earlier")
	c.noteChanged("pods that are deleted while they run", "no record", "a record that ends at the deletion")
	c.noteChanged("a record without Prometheus", "waits, and is sent incomplete after backlog_maxretries", "is sent at once with usage = pending, and completed")
	c.noteChanged("errors of Prometheus", "the collector ends", "are tried again")
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
		b.openBlock("component", x.name)
		b.writeAttribute("amount", x.amount)
		if x.total {
			b.writeAttribute("kind", `"total"`)
		}
		b.writeAttribute("when", x.when)
		b.closeBlock()
	}
}
