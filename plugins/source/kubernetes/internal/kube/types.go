package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Meta is what every object has.
type Meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	DeletionGrace     *int64            `json:"deletionGracePeriodSeconds,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	OwnerReferences   []Owner           `json:"ownerReferences,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
}

// Version is the object's resource version as a number, which grows with each change of
// an object; 0 where it is not a number.
func (m *Meta) Version() uint64 {
	n, _ := strconv.ParseUint(m.ResourceVersion, 10, 64) // 0 is the answer
	return n
}

// Removed reports whether the object is deleted but for finalizers that hold it.
func (m *Meta) Removed() bool {
	return m.DeletionTimestamp != nil && m.DeletionGrace != nil && *m.DeletionGrace == 0
}

// Controller returns the owner that manages the object; nil when there is none.
func (m *Meta) Controller() *Owner {
	for i := range m.OwnerReferences {
		if m.OwnerReferences[i].Controller {
			return &m.OwnerReferences[i]
		}
	}
	return nil
}

// Owner is an object that another one belongs to.
type Owner struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller,omitempty"`
}

// Pod is a pod.
type Pod struct {
	Metadata Meta      `json:"metadata"`
	Spec     PodSpec   `json:"spec"`
	Status   PodStatus `json:"status"`
}

// PodSpec is what a pod asks for.
type PodSpec struct {
	NodeName            string      `json:"nodeName,omitempty"`
	ServiceAccountName  string      `json:"serviceAccountName,omitempty"`
	SchedulerName       string      `json:"schedulerName,omitempty"`
	RuntimeClassName    string      `json:"runtimeClassName,omitempty"`
	PriorityClassName   string      `json:"priorityClassName,omitempty"`
	Priority            *int64      `json:"priority,omitempty"`
	Overhead            Quantities  `json:"overhead,omitempty"`
	Resources           Resources   `json:"resources,omitzero"`
	InitContainers      []Container `json:"initContainers,omitempty"`
	Containers          []Container `json:"containers,omitempty"`
	EphemeralContainers []Container `json:"ephemeralContainers,omitempty"`
	ResourceClaims      []PodClaim  `json:"resourceClaims,omitempty"`
}

// PodClaim is a claim of devices by the name that the pod's containers have for it: an object
// of that name, or the claim that is made for the pod, whose name the pod's status has.
type PodClaim struct {
	Name     string `json:"name"`
	Object   string `json:"resourceClaimName,omitempty"`
	Template string `json:"resourceClaimTemplateName,omitempty"`
}

// Container is a container of a pod.
type Container struct {
	Name          string    `json:"name"`
	Image         string    `json:"image,omitempty"`
	RestartPolicy string    `json:"restartPolicy,omitempty"` // Always makes an init container a sidecar
	Resources     Resources `json:"resources,omitzero"`
}

// Quantities are amounts by the name of the resource, as Kubernetes writes them.
type Quantities map[string]string

// Resources are what a container asks for and what it may use.
type Resources struct {
	Requests Quantities `json:"requests,omitempty"`
	Limits   Quantities `json:"limits,omitempty"`
	Claims   []ClaimRef `json:"claims,omitempty"`
}

// ClaimRef names devices that a container uses: those of a request of one of its pod's claims,
// or of all requests.
type ClaimRef struct {
	Name    string `json:"name"`
	Request string `json:"request,omitempty"`
}

// PodStatus is how a pod is.
type PodStatus struct {
	Phase                      string            `json:"phase,omitempty"`
	Reason                     string            `json:"reason,omitempty"`
	Message                    string            `json:"message,omitempty"`
	StartTime                  *time.Time        `json:"startTime,omitempty"`
	QOSClass                   string            `json:"qosClass,omitempty"`
	Conditions                 []Condition       `json:"conditions,omitempty"`
	InitContainerStatuses      []ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses          []ContainerStatus `json:"containerStatuses,omitempty"`
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
	ResourceClaimStatuses      []PodClaimStatus  `json:"resourceClaimStatuses,omitempty"`
	ExtendedClaim              *ExtendedClaim    `json:"extendedResourceClaimStatus,omitempty"`
}

// PodClaimStatus says which object a claim of a pod is; "" where none was needed.
type PodClaimStatus struct {
	Name   string `json:"name"`
	Object string `json:"resourceClaimName,omitempty"`
}

// ExtendedClaim is the claim that the scheduler has made for extended resources which devices
// of DRA stand for.
type ExtendedClaim struct {
	Object   string `json:"resourceClaimName"`
	Mappings []struct {
		Container string `json:"containerName"`
		Resource  string `json:"resourceName"`
		Request   string `json:"requestName"`
	} `json:"requestMappings"`
}

// The phases of a pod.
const (
	Pending   = "Pending"
	Running   = "Running"
	Succeeded = "Succeeded"
	Failed    = "Failed"
)

// Over reports whether no container of the pod starts any more.
func (s *PodStatus) Over() bool { return s.Phase == Succeeded || s.Phase == Failed }

// Condition is one of an object's.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason,omitempty"`
	LastTransitionTime time.Time `json:"lastTransitionTime,omitzero"`
}

// ContainerStatus is how a container is, and how it ended the time before.
type ContainerStatus struct {
	Name         string     `json:"name"`
	State        State      `json:"state,omitzero"`
	LastState    State      `json:"lastState,omitzero"`
	RestartCount int64      `json:"restartCount,omitempty"`
	ContainerID  string     `json:"containerID,omitempty"`
	ImageID      string     `json:"imageID,omitempty"`
	Resources    *Resources `json:"resources,omitempty"` // that are in effect, after a resize
}

// State is one of three.
type State struct {
	Waiting    *Waiting    `json:"waiting,omitempty"`
	Running    *Started    `json:"running,omitempty"`
	Terminated *Terminated `json:"terminated,omitempty"`
}

// Waiting is a container that does not run yet, or not again yet.
type Waiting struct {
	Reason string `json:"reason,omitempty"`
}

// Started is a container that runs.
type Started struct {
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// Terminated is a container that has ended.
type Terminated struct {
	ExitCode    int       `json:"exitCode"`
	Signal      int       `json:"signal,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	FinishedAt  time.Time `json:"finishedAt,omitzero"`
	ContainerID string    `json:"containerID,omitempty"`
}

// Node is a node.
type Node struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Allocatable Quantities  `json:"allocatable"`
		Conditions  []Condition `json:"conditions"`
	} `json:"status"`
}

// Ready reports whether the node can run pods.
func (n *Node) Ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// Namespace is a namespace.
type Namespace struct {
	Metadata Meta `json:"metadata"`
}

// Job is a job.
type Job struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		Suspend     bool   `json:"suspend,omitempty"`
		Parallelism *int64 `json:"parallelism,omitempty"` // nil: 1
		Completions *int64 `json:"completions,omitempty"`
		Template    struct {
			Metadata Meta    `json:"metadata"`
			Spec     PodSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Active         int64       `json:"active,omitempty"`
		StartTime      *time.Time  `json:"startTime"`
		CompletionTime *time.Time  `json:"completionTime"`
		Succeeded      int64       `json:"succeeded"`
		Failed         int64       `json:"failed"`
		Conditions     []Condition `json:"conditions"`
	} `json:"status"`
}

// Waiting is how many pods the job has not got because it is suspended, as by Kueue until it
// admits the job.
func (j *Job) Waiting() int64 {
	for _, c := range j.Status.Conditions {
		if (c.Type == "Failed" || c.Type == "Complete") && c.Status == "True" {
			return 0
		}
	}
	if !j.Spec.Suspend || j.Metadata.DeletionTimestamp != nil {
		return 0
	}
	pods := int64(1)
	if n := j.Spec.Parallelism; n != nil {
		pods = *n
	}
	if n := j.Spec.Completions; n != nil {
		pods = min(pods, *n-j.Status.Succeeded)
	}
	return max(0, pods-j.Status.Active)
}

// Claim is a ResourceClaim.
type Claim struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Allocation *struct {
			Devices struct {
				Results []Allocated `json:"results"`
			} `json:"devices"`
		} `json:"allocation,omitempty"`
		ReservedFor []struct {
			UID string `json:"uid"`
		} `json:"reservedFor,omitempty"`
	} `json:"status"`
}

// Allocated is a device that a request of a claim has got.
type Allocated struct {
	Request     string     `json:"request"` // with "/" and the alternative that was taken of it, where it has several
	Driver      string     `json:"driver"`
	Pool        string     `json:"pool"`
	Device      string     `json:"device"`
	AdminAccess bool       `json:"adminAccess,omitempty"`
	ShareID     string     `json:"shareID,omitempty"`          // of a device that several claims may have at once
	Consumed    Quantities `json:"consumedCapacity,omitempty"` // of such a device
}

// Slice is a ResourceSlice: devices of a pool of a driver.
type Slice struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		Driver string `json:"driver"`
		Pool   struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation"`
		} `json:"pool"`
		Node    string   `json:"nodeName,omitempty"` // "": devices say it, or several nodes can use them
		Devices []Device `json:"devices,omitempty"`
	} `json:"spec"`
}

// Device is a device of a slice.
type Device struct {
	Name       string                     `json:"name"`
	Node       string                     `json:"nodeName,omitempty"`
	Attributes map[string]DeviceAttribute `json:"attributes,omitempty"`
	Counters   []struct {
		Set string `json:"counterSet"`
	} `json:"consumesCounters,omitempty"` // that devices which exclude each other share
	Taints []struct {
		Effect string `json:"effect"`
	} `json:"taints,omitempty"`
}

// Tainted reports whether the driver or an administrator keeps claims from getting the device.
func (d *Device) Tainted() bool {
	for _, t := range d.Taints {
		if t.Effect == "NoSchedule" || t.Effect == "NoExecute" {
			return true
		}
	}
	return false
}

// DeviceAttribute is an attribute of a device; Text is "" where it is not a text.
type DeviceAttribute struct {
	Text string `json:"string,omitempty"`
}

// Text returns an attribute that the driver has without its domain or with it; "" where
// there is none.
func (d *Device) Text(driver, name string) string {
	return cmp.Or(d.Attributes[name].Text, d.Attributes[driver+"/"+name].Text)
}

// BadObject is an object that cannot be decoded.
type BadObject struct {
	Name string // namespace/name, as far as it is known
	UID  string
	Raw  []byte
	Err  error
}

// Error implements error.
func (b *BadObject) Error() string { return fmt.Sprintf("%s: %v", b.Name, b.Err) }

// decodeObject reads one object. A *BadObject is an error of that object alone.
func decodeObject[T any](raw []byte) (*T, *BadObject) {
	out := new(T)
	err := json.Unmarshal(raw, out)
	if err == nil {
		return out, nil
	}
	var named struct {
		Metadata struct{ Namespace, Name, UID string }
	}
	_ = json.Unmarshal(raw, &named) // what it has is enough
	return nil, &BadObject{Name: named.Metadata.Namespace + "/" + named.Metadata.Name, UID: named.Metadata.UID, Raw: raw, Err: err}
}

// listOf is a page of a listing.
type listOf[T any] struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []T `json:"items"`
}

// decodeList reads a page. When it cannot be read at once, each object is by itself, and
// what is odd is in bad.
func decodeList[T any](answer []byte) (list listOf[*T], bad []*BadObject, err error) {
	if json.Unmarshal(answer, &list) == nil && !slices.Contains(list.Items, nil) {
		return list, nil, nil
	}
	var raw listOf[json.RawMessage]
	if err := json.Unmarshal(answer, &raw); err != nil {
		return list, nil, err
	}
	list = listOf[*T]{Metadata: raw.Metadata}
	for _, text := range raw.Items {
		if one, wrong := decodeObject[T](text); wrong != nil {
			bad = append(bad, wrong)
		} else {
			list.Items = append(list.Items, one)
		}
	}
	return list, bad, nil
}
