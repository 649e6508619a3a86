package run

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// shorten keeps a name within what an id may have.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:maxName-40], "") + "~" + hex.EncodeToString(sum[:16])
}

// Owner says in which keys of a job's meta its owner stands.
type Owner struct{ ID, Name, Email string }

// attribute is a column and how it is made.
type attribute struct {
	sdk.Attribute
	value func(*View, Owner) (sdk.Value, error)
}

// Attributes are the columns of a run.
func Attributes() []sdk.Attribute {
	all := columns()
	out := make([]sdk.Attribute, len(all))
	for i := range all {
		out[i] = all[i].Attribute
	}
	return out
}

// Values are the values of a run in the order of Attributes; those that no one
// wants are null. Unread names the wanted attributes that cannot be read, which are null too.
func (v *View) Values(owner Owner, wants func(string) bool) (values []sdk.Value, unread []sdk.Unread) {
	all := columns()
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

func columns() []attribute {
	all := append(identity(), times()...)
	all = append(all, jobs()...)
	all = append(all, amounts()...)
	all = append(all, cards()...)
	return append(all, ends()...)
}

func column(name string, typ sdk.Type, doc string, value func(*View, Owner) sdk.Value) attribute {
	return attribute{sdk.Attribute{Name: name, Type: typ, Doc: doc}, func(v *View, o Owner) (sdk.Value, error) { return value(v, o), nil }}
}

func text(name, doc string, value func(*View) string) attribute {
	return column(name, sdk.TypeString, doc, func(v *View, _ Owner) sdk.Value { return some(value(v)) })
}

// some is null for an empty text.
func some(s string) sdk.Value {
	if s == "" {
		return sdk.Null()
	}
	return sdk.String(s)
}

func identity() []attribute {
	return []attribute{
		text("id", "id of the run: \"<allocation>-<task>\" for a task's first start, with \"@<start in ms since 1970>\" for later ones", func(v *View) string { return v.Name() }),
		text("alloc_id", "id of the allocation", func(v *View) string { return v.Alloc.ID }),
		text("alloc_name", "name of the allocation, for example web.cache[0]", func(v *View) string { return v.Alloc.Name }),
		text("task", "name of the task", func(v *View) string { return v.Task }),
		text("group", "name of the task group", func(v *View) string { return v.Alloc.TaskGroup }),
		text("namespace", "namespace", func(v *View) string { return v.Alloc.Namespace }),
		text("node", "name of the node", func(v *View) string { return v.Alloc.NodeName }),
		text("node_id", "id of the node", func(v *View) string { return v.Alloc.NodeID }),
		text("node_class", "class of the node", func(v *View) string { return v.Node.Class }),
		text("node_pool", "pool of the node; the job's while the node is not known", (*View).pool),
		text("datacenter", "datacenter of the node", func(v *View) string { return v.Node.Datacenter }),
		text("lifecycle", "when a task runs that is no main task: prestart, poststart or poststop; null for a main task", (*View).hook),
		column("sidecar", sdk.TypeBool, "whether the task runs beside the main ones for as long as they do", func(v *View, _ Owner) sdk.Value {
			l := v.lifecycle()
			return sdk.Bool(l != nil && l.Sidecar)
		}),
		column("restart", sdk.TypeBool, "whether it is a later start of the task in its allocation", func(v *View, _ Owner) sdk.Value { return sdk.Bool(!v.First) }),
		text("previous_alloc", "allocation that this one replaces", func(v *View) string { return v.Alloc.PreviousAllocation }),
		text("next_alloc", "allocation that replaces this one", func(v *View) string { return v.Alloc.NextAllocation }),
		text("preempted_by", "allocation that this one had to make room for", func(v *View) string { return v.Alloc.PreemptedBy }),
	}
}

func times() []attribute {
	at := func(name, doc string, value func(*View) time.Time) attribute {
		return column(name, sdk.TypeTime, doc, func(v *View, _ Owner) sdk.Value { return sdk.Time(value(v)) })
	}
	return []attribute{
		at("start", "when the task started", func(v *View) time.Time { return v.Start }),
		at("stop", "when it stopped; null while it runs", func(v *View) time.Time { return v.Stop }),
		at("submit", "when the job's version was submitted; for an allocation that replaces another, when it was made", (*View).submit),
		at("create", "when the allocation was made", func(v *View) time.Time { return nanos(v.Alloc.CreateTime) }),
		column("wait_seconds", sdk.TypeFloat, "seconds from submit to the task's first start; null for later ones", func(v *View, _ Owner) sdk.Value {
			if submit := v.submit(); v.First && v.Start.After(submit) {
				return sdk.Float(v.Start.Sub(submit).Seconds())
			}
			return sdk.Null()
		}),
		column("runtime_seconds", sdk.TypeFloat, "seconds from start to stop; null while it runs", func(v *View, _ Owner) sdk.Value {
			if v.Stop.IsZero() {
				return sdk.Null()
			}
			return sdk.Float(v.Stop.Sub(v.Start).Seconds())
		}),
		column("estimated", sdk.TypeBool, "whether the stop is not what Nomad said, but when the run was last known to go on or was given up", func(v *View, _ Owner) sdk.Value { return sdk.Bool(v.Estimated) }),
	}
}

func (v *View) submit() time.Time {
	create := nanos(v.Alloc.CreateTime)
	if v.Job == nil || v.Job.SubmitTime <= 0 || v.Alloc.PreviousAllocation != "" {
		return create
	}
	if t := nanos(v.Job.SubmitTime); t.Before(create) {
		return t
	}
	return create
}

// pool is the node's pool.
func (v *View) pool() string {
	if v.Node.Pool == "" && v.Job != nil {
		return v.Job.NodePool
	}
	return v.Node.Pool
}

func (v *View) lifecycle() *nomad.Lifecycle {
	if t := v.task(); t != nil && t.Lifecycle != nil {
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

// spec is the task's description in the job; nil when it is not known.
func (v *View) task() *nomad.Task {
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
