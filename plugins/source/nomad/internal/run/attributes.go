package run

import (
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// Owner says in which keys of a job's meta its owner stands.
type Owner struct{ ID, Name, Email string }

// attribute is a column and how it is made.
type attribute struct {
	sdk.Attribute
	value func(*View, Owner) (sdk.Value, error)
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

// Values are the values of a run in the order of Attributes; those that no one
// wants are null. Unread names the wanted attributes that cannot be read, which are null too.
func (v *View) Values(owner Owner, wants func(string) bool) (values []sdk.Value, unread []sdk.Unread) {
	all := allColumns()
	values = make([]sdk.Value, len(all))
	for i := range all {
		if !wants(all[i].Name) {
			continue
		}
		value, err := all[i].value(v, owner)
		if err != nil {
			unread = append(unread, sdk.Unread{Attribute: all[i].Name, Problem: err.Error()})
			continue
		}
		values[i] = value
	}
	return values, unread
}

func allColumns() []attribute {
	all := append(identityColumns(), timeColumns()...)
	all = append(all, jobColumns()...)
	all = append(all, amountColumns()...)
	all = append(all, gpuColumns()...)
	return append(all, endColumns()...)
}

func newColumn(name string, typ sdk.Type, doc string, value func(*View, Owner) sdk.Value) attribute {
	return attribute{sdk.Attribute{Name: name, Type: typ, Doc: doc}, func(v *View, o Owner) (sdk.Value, error) { return value(v, o), nil }}
}

func textColumn(name, doc string, value func(*View) string) attribute {
	return newColumn(name, sdk.TypeString, doc, func(v *View, _ Owner) sdk.Value { return stringOrNull(value(v)) })
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
		textColumn("id", "id of the run: \"<allocation>-<task>\" for a task's first start, with \"@<start in ms since 1970>\" for later ones", func(v *View) string { return v.Name() }),
		textColumn("alloc_id", "id of the allocation", func(v *View) string { return v.Alloc.ID }),
		textColumn("alloc_name", "name of the allocation, for example web.cache[0]", func(v *View) string { return v.Alloc.Name }),
		textColumn("task", "name of the task", func(v *View) string { return v.Task }),
		textColumn("group", "name of the task group", func(v *View) string { return v.Alloc.TaskGroup }),
		textColumn("namespace", "namespace", func(v *View) string { return v.Alloc.Namespace }),
		textColumn("node", "name of the node", func(v *View) string { return v.Alloc.NodeName }),
		textColumn("node_id", "id of the node", func(v *View) string { return v.Alloc.NodeID }),
		textColumn("node_class", "class of the node", func(v *View) string { return v.Node.Class }),
		textColumn("node_pool", "pool of the node; the job's while the node is not known", (*View).nodePool),
		textColumn("datacenter", "datacenter of the node", func(v *View) string { return v.Node.Datacenter }),
		textColumn("lifecycle", "when a task runs that is no main task: prestart, poststart or poststop; null for a main task", (*View).hook),
		newColumn("sidecar", sdk.TypeBool, "whether the task runs beside the main ones for as long as they do", func(v *View, _ Owner) sdk.Value {
			l := v.lifecycle()
			return sdk.Bool(l != nil && l.Sidecar)
		}),
		newColumn("restart", sdk.TypeBool, "whether it is a later start of the task in its allocation", func(v *View, _ Owner) sdk.Value { return sdk.Bool(!v.First) }),
		textColumn("previous_alloc", "allocation that this one replaces", func(v *View) string { return v.Alloc.PreviousAllocation }),
		textColumn("next_alloc", "allocation that replaces this one", func(v *View) string { return v.Alloc.NextAllocation }),
		textColumn("preempted_by", "allocation that this one had to make room for", func(v *View) string { return v.Alloc.PreemptedBy }),
	}
}

func timeColumns() []attribute {
	at := func(name, doc string, value func(*View) time.Time) attribute {
		return newColumn(name, sdk.TypeTime, doc, func(v *View, _ Owner) sdk.Value { return sdk.Time(value(v)) })
	}
	return []attribute{
		at("start", "when the task started", func(v *View) time.Time { return v.Start }),
		at("stop", "when it stopped; null while it runs", func(v *View) time.Time { return v.Stop }),
		at("submit", "when the job's version was submitted; for an allocation that replaces another, when it was made", (*View).submitTime),
		at("create", "when the allocation was made", func(v *View) time.Time { return nanoTime(v.Alloc.CreateTime) }),
		newColumn("wait_seconds", sdk.TypeFloat, "seconds from submit to the task's first start; null for later ones", func(v *View, _ Owner) sdk.Value {
			if submit := v.submitTime(); v.First && v.Start.After(submit) {
				return sdk.Float(v.Start.Sub(submit).Seconds())
			}
			return sdk.Null()
		}),
		newColumn("runtime_seconds", sdk.TypeFloat, "seconds from start to stop; null while it runs", func(v *View, _ Owner) sdk.Value {
			if v.Stop.IsZero() {
				return sdk.Null()
			}
			return sdk.Float(v.Stop.Sub(v.Start).Seconds())
		}),
		newColumn("estimated", sdk.TypeBool, "whether the stop is not what Nomad said, but when the run was last known to go on or was given up", func(v *View, _ Owner) sdk.Value { return sdk.Bool(v.Estimated) }),
	}
}

func (v *View) submitTime() time.Time {
	create := nanoTime(v.Alloc.CreateTime)
	if v.Job == nil || v.Job.SubmitTime <= 0 || v.Alloc.PreviousAllocation != "" {
		return create
	}
	if t := nanoTime(v.Job.SubmitTime); t.Before(create) {
		return t
	}
	return create
}

// nodePool is the node's pool.
func (v *View) nodePool() string {
	if v.Node.Pool == "" && v.Job != nil {
		return v.Job.NodePool
	}
	return v.Node.Pool
}

func (v *View) lifecycle() *nomad.Lifecycle {
	if t := v.findTask(); t != nil && t.Lifecycle != nil {
		return t.Lifecycle
	}
	if r := v.Alloc.AllocatedResources; r != nil {
		return r.TaskLifecycles[v.Task]
	}
	return nil
}

func (v *View) hook() string {
	if l := v.lifecycle(); l != nil {
		return l.Hook
	}
	return ""
}

// findTask finds the task in the job; nil when it is not known.
func (v *View) findTask() *nomad.Task {
	if v.Job == nil {
		return nil
	}
	for i := range v.Job.TaskGroups {
		for j := range v.Job.TaskGroups[i].Tasks {
			if t := &v.Job.TaskGroups[i].Tasks[j]; t.Name == v.Task {
				return t
			}
		}
	}
	return nil
}
