package run

import (
	"cmp"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Rules say what of a pod means what.
type Rules struct {
	User, Project []string          // keys of annotations and labels, the best first
	Model         []string          // labels of nodes with the model of their GPUs
	GPU           func(string) bool // whether a resource is GPUs
	Driver        func(string) bool // whether the devices of a driver are GPUs
}

// isCountedGPU reports whether a resource is GPUs that are counted by it, and not by devices.
func (r *Rules) isCountedGPU(name string) bool {
	return r.GPU(name) && !strings.HasPrefix(name, implicit)
}

// subject is a run with what its attributes are made of.
type subject struct {
	*View
	rules            *Rules
	requests, limits Amounts
	devices          []Device // that count for the run
	devicesErr       error    // why they are not all

	unsure error // why the value that is made cannot be told
}

// requestOf is a requested amount, limitOf a limit.
func (s *subject) requestOf(name string) int64 { return s.amountOf(s.requests, requests, name) }
func (s *subject) limitOf(name string) int64   { return s.amountOf(s.limits, limits, name) }

// amountOf is one of some amounts. What is made of it cannot be told where it cannot be read.
func (s *subject) amountOf(all Amounts, of side, name string) int64 {
	if all[name] == unreadable && s.unsure == nil {
		s.unsure = s.amountProblem(of, name)
	}
	return all[name]
}

// attribute is a column and how it is made.
type attribute struct {
	sdk.Attribute
	value func(*subject) sdk.Value
}

// Attributes are the columns of a run.
func Attributes() []sdk.Attribute {
	all := allColumns()
	out := make([]sdk.Attribute, len(all))
	for i := range all {
		out[i] = all[i].Attribute
	}
	return out
}

// Columns makes the values of runs.
type Columns struct {
	all   []attribute
	wants func(string) bool
	rules *Rules
}

// NewColumns makes the attributes that wants names; the others stay null.
func NewColumns(rules *Rules, wants func(string) bool) *Columns {
	return &Columns{all: allColumns(), wants: wants, rules: rules}
}

// Values are the values of a run in the order of Attributes. Unread names the wanted ones
// that cannot be read; they are null, or a map without what cannot be read.
func (c *Columns) Values(v *View) (values []sdk.Value, unread []sdk.Unread) {
	s := &subject{View: v, rules: c.rules, requests: v.runAmounts(requests), limits: v.runAmounts(limits)}
	s.devices, s.devicesErr = v.countedDevices()
	values = make([]sdk.Value, len(c.all))
	for i := range c.all {
		a := &c.all[i]
		if !c.wants(a.Name) {
			continue
		}
		s.unsure = nil
		values[i] = a.value(s)
		if s.unsure == nil {
			continue
		}
		unread = append(unread, sdk.Unread{Attribute: a.Name, Problem: s.unsure.Error()})
		if a.Type != sdk.TypeMap {
			values[i] = sdk.Null()
		}
	}
	return values, unread
}

func allColumns() []attribute {
	all := append(identityColumns(), timeColumns()...)
	all = append(all, ownerColumns()...)
	all = append(all, resourceColumns()...)
	return append(all, endColumns()...)
}

func newColumn(name string, typ sdk.Type, doc string, value func(*subject) sdk.Value) attribute {
	return attribute{sdk.Attribute{Name: name, Type: typ, Doc: doc}, value}
}

func textColumn(name, doc string, value func(*subject) string) attribute {
	return newColumn(name, sdk.TypeString, doc, func(s *subject) sdk.Value { return stringOrNull(value(s)) })
}

// stringOrNull is null for an empty text.
func stringOrNull(s string) sdk.Value {
	if s == "" {
		return sdk.Null()
	}
	return sdk.String(s)
}

func identityColumns() []attribute {
	return []attribute{
		textColumn("id", "id of the run: \"<uid>-<container>@<start in s since 1970>\"; of a pod as one run \"<namespace>-<pod>-<uid>\"", func(s *subject) string { return s.Name() }),
		textColumn("uid", "uid of the pod", func(s *subject) string { return s.UID() }),
		textColumn("pod", "name of the pod", func(s *subject) string { return s.Pod.Metadata.Name }),
		textColumn("namespace", "namespace", func(s *subject) string { return s.Pod.Metadata.Namespace }),
		textColumn("container", "name of the container; null for a pod as one run", func(s *subject) string { return s.Container }),
		textColumn("kind", "kind of the container: main, init, sidecar or ephemeral; pod for a pod as one run", func(s *subject) string {
			if s.Container == "" {
				return "pod"
			}
			return s.Kind
		}),
		newColumn("restart", sdk.TypeBool, "whether it is a later start of the container in its pod, as far as is known", func(s *subject) sdk.Value { return sdk.Bool(!s.First) }),
		textColumn("image", "image of the container; of a pod as one run, of its first container", func(s *subject) string { return s.containerSpec().Image }),
		textColumn("node", "name of the node", func(s *subject) string { return s.Pod.Spec.NodeName }),
		newColumn("node_labels", sdk.TypeMap, "labels of the node, for example job.node_labels[\"topology.kubernetes.io/zone\"]", func(s *subject) sdk.Value { return sdk.StringMap(s.Node) }),
		textColumn("service_account", "service account of the pod", func(s *subject) string { return s.Pod.Spec.ServiceAccountName }),
		textColumn("scheduler", "scheduler that placed the pod", func(s *subject) string { return s.Pod.Spec.SchedulerName }),
		textColumn("runtime_class", "runtime class of the pod", func(s *subject) string { return s.Pod.Spec.RuntimeClassName }),
		textColumn("priority_class", "priority class of the pod", func(s *subject) string { return s.Pod.Spec.PriorityClassName }),
		newColumn("priority", sdk.TypeInt, "priority of the pod", func(s *subject) sdk.Value {
			if p := s.Pod.Spec.Priority; p != nil {
				return sdk.Int(*p)
			}
			return sdk.Null()
		}),
		textColumn("qos", "quality of service: Guaranteed, Burstable or BestEffort", func(s *subject) string { return s.Pod.Status.QOSClass }),
	}
}

// containerSpec is that of the container, or of the leading one.
func (s *subject) containerSpec() kube.Container {
	if c, _ := s.Find(cmp.Or(s.Container, s.leadingContainer())); c != nil {
		return *c
	}
	return kube.Container{}
}

func timeColumns() []attribute {
	at := func(name, doc string, value func(*subject) time.Time) attribute {
		return newColumn(name, sdk.TypeTime, doc, func(s *subject) sdk.Value { return sdk.Time(value(s)) })
	}
	return []attribute{
		at("start", "when the container started; of a pod as one run, when its node took it", func(s *subject) time.Time { return s.Start }),
		at("stop", "when it stopped; null while it runs", func(s *subject) time.Time { return s.Stop }),
		at("submit", "when the pod was created", func(s *subject) time.Time { return s.Pod.Metadata.CreationTimestamp }),
		newColumn("wait_seconds", sdk.TypeFloat, "seconds from the pod's creation to the container's first start; null for later ones", func(s *subject) sdk.Value {
			if created := s.Pod.Metadata.CreationTimestamp; s.First && !s.Start.Before(created) {
				return sdk.Float(s.Start.Sub(created).Seconds())
			}
			return sdk.Null()
		}),
		newColumn("runtime_seconds", sdk.TypeFloat, "seconds from start to stop; null while it runs", func(s *subject) sdk.Value {
			if s.Open() {
				return sdk.Null()
			}
			return sdk.Float(s.Stop.Sub(s.Start).Seconds())
		}),
		newColumn("estimated", sdk.TypeBool, "whether start or stop is not what Kubernetes said, but follows from the deletion of the pod, from its job, or from when it was last seen", func(s *subject) sdk.Value {
			return sdk.Bool(s.Estimated || s.Guessed)
		}),
	}
}

func ownerColumns() []attribute {
	maps := func(name, doc string, value func(*subject) map[string]string) attribute {
		return newColumn(name, sdk.TypeMap, doc, func(s *subject) sdk.Value { return sdk.StringMap(value(s)) })
	}
	return []attribute{
		textColumn("user", "user, from the annotations and labels that the setting user names", func(s *subject) string { return s.Lookup(s.rules.User) }),
		textColumn("project", "project, from the annotations and labels that the setting project names", func(s *subject) string { return s.Lookup(s.rules.Project) }),
		textColumn("owner_kind", "kind of what made the pod, for example Job, StatefulSet or Workflow", func(s *subject) string { return s.owner().Kind }),
		textColumn("owner", "name of what made the pod", func(s *subject) string { return s.owner().Name }),
		textColumn("job", "name of the Job that made the pod", func(s *subject) string {
			if o := s.owner(); o.Kind == "Job" {
				return o.Name
			}
			return ""
		}),
		textColumn("cron_job", "name of the CronJob that made the Job", func(s *subject) string {
			if s.Job == nil {
				return ""
			}
			return s.Job.Cron
		}),
		textColumn("job_owner_kind", "kind of what made the Job where that is not a CronJob, for example JobSet or Workflow", func(s *subject) string { return s.jobOwner().Kind }),
		textColumn("job_owner", "name of what made the Job where that is not a CronJob", func(s *subject) string { return s.jobOwner().Name }),
		textColumn("queue", "queue of Kueue (LocalQueue) that admitted the pod, or that the pod or its Job was submitted to", func(s *subject) string { return s.kueueQueue() }),
		textColumn("cluster_queue", "Kueue's ClusterQueue that admitted the pod; null before Kueue 0.17", func(s *subject) string { return s.Pod.Metadata.Labels[kueue+"cluster-queue-name"] }),
		textColumn("workflow", "name of the workflow that the pod is a part of", func(s *subject) string { _, name := s.workflow(); return name }),
		textColumn("workflow_tool", "the tool that runs the workflow: argo, tekton, nextflow, airflow, kubeflow, volcano, jobset, ray, spark, reana or dask", func(s *subject) string { tool, _ := s.workflow(); return tool }),
		maps("labels", "labels of the pod, for example job.labels[\"app\"]", func(s *subject) map[string]string { return s.Pod.Metadata.Labels }),
		maps("annotations", "annotations of the pod", func(s *subject) map[string]string { return s.Pod.Metadata.Annotations }),
		maps("namespace_labels", "labels of the namespace", func(s *subject) map[string]string { return s.namespaceMeta().Labels }),
		maps("namespace_annotations", "annotations of the namespace", func(s *subject) map[string]string { return s.namespaceMeta().Annotations }),
	}
}

func (e *Entry) owner() kube.Owner {
	if o := e.Pod.Metadata.Controller(); o != nil {
		return *o
	}
	return kube.Owner{}
}

// jobOwner is the owner of the pod's job, where that is not a CronJob.
func (e *Entry) jobOwner() kube.Owner {
	if e.Job != nil {
		return e.Job.Top
	}
	return kube.Owner{}
}

// kueue begins the names of Kueue's labels.
const kueue = "kueue.x-k8s.io/"

// QueueLabel is the label by which something is submitted to a queue of Kueue.
const QueueLabel = kueue + "queue-name"

// kueueQueue is the queue of Kueue: what it says itself comes before what was asked for.
func (e *Entry) kueueQueue() string {
	labels, job := e.Pod.Metadata.Labels, ""
	if e.Job != nil {
		job = e.Job.Queue
	}
	return cmp.Or(labels[kueue+"local-queue-name"], labels[QueueLabel], job)
}

func (e *Entry) namespaceMeta() Labelled {
	if e.Namespace != nil {
		return *e.Namespace
	}
	return Labelled{}
}

// Lookup finds the first of some keys that the pod's annotations or labels have, or else
// those of its namespace.
func (e *Entry) Lookup(keys []string) string {
	n := e.namespaceMeta()
	for _, both := range [][2]map[string]string{{e.Pod.Metadata.Annotations, e.Pod.Metadata.Labels}, {n.Annotations, n.Labels}} {
		for _, key := range keys {
			if value := cmp.Or(both[0][key], both[1][key]); value != "" {
				return value
			}
		}
	}
	return ""
}

// workflow is the workflow that the pod is a part of, by the labels that tools give.
func (e *Entry) workflow() (tool, name string) {
	for _, known := range [][2]string{
		{"argo", "workflows.argoproj.io/workflow"},
		{"tekton", "tekton.dev/pipelineRun"},
		{"nextflow", "nextflow.io/runName"},
		{"airflow", "dag_id"},
		{"kubeflow", "pipeline/runid"},
		{"kubeflow", "training.kubeflow.org/job-name"},
		{"volcano", "volcano.sh/job-name"},
		{"jobset", "jobset.sigs.k8s.io/jobset-name"},
		{"ray", "ray.io/cluster"},
		{"spark", "sparkoperator.k8s.io/app-name"},
		{"spark", "spark-app-selector"},
		{"reana", "reana-run-job-workflow-uuid"},
		{"dask", "dask.org/cluster-name"},
	} {
		if name := cmp.Or(e.Pod.Metadata.Labels[known[1]], e.Pod.Metadata.Annotations[known[1]]); name != "" {
			return known[0], name
		}
	}
	for _, o := range e.Pod.Metadata.OwnerReferences {
		if o.Kind == "Workflow" && strings.HasPrefix(o.APIVersion, "argoproj.io/") {
			return "argo", o.Name
		}
	}
	return "", ""
}
