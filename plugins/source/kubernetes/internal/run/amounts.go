package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Names of the resources that Kubernetes itself has.
const (
	cpu     = "cpu"
	memory  = "memory"
	storage = "ephemeral-storage"
)

// Amounts are amounts by the name of the resource: of CPU in thousandths of a core, of all
// others in their unit, bytes for memory.
type Amounts map[string]int64

// ParseAmounts reads quantities.
func ParseAmounts(q kube.Quantities) (Amounts, error) {
	out := make(Amounts, len(q))
	for name, text := range q {
		unit := kube.One
		if name == cpu {
			unit = kube.Milli
		}
		n, err := kube.Amount(text, unit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = n
	}
	return out, nil
}

// Add adds amounts. A sum is below what an integer holds: each amount has its bound.
func (a Amounts) Add(b Amounts) {
	for name, n := range b {
		a[name] += n
	}
}

func (a Amounts) raise(b Amounts) {
	for name, n := range b {
		a[name] = max(a[name], n)
	}
}

// Extended reports whether a device plugin or an administrator has the resource
// added to nodes.
func Extended(name string) bool {
	domain, _, some := strings.Cut(name, "/")
	return some && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// side picks requests or limits.
type side func(*kube.Resources) kube.Quantities

func requests(r *kube.Resources) kube.Quantities { return r.Requests }
func limits(r *kube.Resources) kube.Quantities   { return r.Limits }

// amounts are what the run asked for, or might use.
func (v *View) amounts(of side) (Amounts, error) {
	whole, err := v.pod(of)
	if err != nil || v.Container == "" {
		return whole, err
	}
	out, err := v.container(v.Container, of)
	if err != nil || v.Container != v.leading() {
		return out, err
	}
	// What is given to the pod and to none of its containers goes with the leading one.
	steady, err := v.steady(of)
	for name, n := range whole {
		if rest := n - max(steady[name], v.peak(of, name)); rest > 0 {
			out[name] += rest
		}
	}
	return out, err
}

// container are the amounts of one container: those that are in effect, where its status
// says so, else those that it asked for.
func (e *Entry) container(name string, of side) (Amounts, error) {
	for _, list := range [][]kube.ContainerStatus{e.Pod.Status.ContainerStatuses, e.Pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].Resources != nil {
				return ParseAmounts(of(list[i].Resources))
			}
		}
	}
	if c, _ := e.Find(name); c != nil {
		return ParseAmounts(of(&c.Resources))
	}
	return Amounts{}, nil
}

// leading is the first main container.
func (e *Entry) leading() string {
	if len(e.Pod.Spec.Containers) == 0 {
		return ""
	}
	return e.Pod.Spec.Containers[0].Name
}

// steady is the sum over the containers that run beside each other.
func (e *Entry) steady(of side) (Amounts, error) {
	sum := Amounts{}
	for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers) {
		if _, kind := e.Find(c.Name); kind == Init {
			continue
		}
		one, err := e.container(c.Name, of)
		if err != nil {
			return nil, err
		}
		sum.Add(one)
	}
	return sum, nil
}

// start is the most that the pod needs while its init containers run: each of them beside
// the sidecars that came before it.
func (e *Entry) start(of side) (Amounts, error) {
	most, sidecars := Amounts{}, Amounts{}
	for _, c := range e.Pod.Spec.InitContainers {
		one, err := e.container(c.Name, of)
		if err != nil {
			return nil, err
		}
		if c.RestartPolicy == "Always" {
			sidecars.Add(one)
			continue
		}
		one.Add(sidecars)
		most.raise(one)
	}
	return most, nil
}

func (e *Entry) peak(of side, name string) int64 {
	most, _ := e.start(of) // its error is that of pod, which was asked before
	return most[name]
}

// pod is what the scheduler reserves for the pod: the greater of what its containers ask
// for beside each other and one after the other, or what the pod itself asks for, and the
// overhead of its runtime.
func (e *Entry) pod(of side) (Amounts, error) {
	sum, err := e.steady(of)
	if err != nil {
		return nil, err
	}
	most, err := e.start(of)
	if err != nil {
		return nil, err
	}
	sum.raise(most)
	own, err := ParseAmounts(of(&e.Pod.Spec.Resources))
	if err != nil {
		return nil, err
	}
	maps.Copy(sum, own)
	over, err := ParseAmounts(e.Pod.Spec.Overhead)
	if err != nil {
		return nil, err
	}
	sum.Add(over)
	return sum, nil
}
