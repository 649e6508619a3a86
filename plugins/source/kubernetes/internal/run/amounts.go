package run

import (
	"errors"
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
// others in their unit, bytes for memory; unreadable where one cannot be read.
type Amounts map[string]int64

// unreadable stands for an amount that cannot be read, and for what depends on it.
const unreadable = -1

// ParseAmounts reads quantities. The error names those that cannot be read; the others are
// returned beside it.
func ParseAmounts(q kube.Quantities) (out Amounts, err error) {
	out = make(Amounts, len(q))
	for _, name := range slices.Sorted(maps.Keys(q)) {
		n, problem := amount(q, name)
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		out[name] = n
	}
	return out, err
}

// readable are quantities as far as they can be read.
func readable(q kube.Quantities) Amounts {
	out := make(Amounts, len(q))
	for name := range q {
		n, err := amount(q, name)
		if err != nil {
			n = unreadable
		}
		out[name] = n
	}
	return out
}

func amount(q kube.Quantities, name string) (int64, error) {
	unit := kube.One
	if name == cpu {
		unit = kube.Milli
	}
	n, err := kube.Amount(q[name], unit)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// Add adds amounts. A sum is below what an integer holds: each amount has its bound.
func (a Amounts) Add(b Amounts) { a.with(b, func(x, y int64) int64 { return x + y }) }

func (a Amounts) raise(b Amounts) { a.with(b, func(x, y int64) int64 { return max(x, y) }) }

func (a Amounts) with(b Amounts, both func(x, y int64) int64) {
	for name, n := range b {
		if n == unreadable || a[name] == unreadable {
			a[name] = unreadable
		} else {
			a[name] = both(a[name], n)
		}
	}
}

// Extended reports whether a device plugin or an administrator has the resource
// added to nodes.
func Extended(name string) bool {
	domain, _, some := strings.Cut(name, "/")
	return some && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// side says whether requests or limits are meant.
type side bool

const (
	requests side = false
	limits   side = true
)

func (of side) in(r *kube.Resources) kube.Quantities {
	if of == limits {
		return r.Limits
	}
	return r.Requests
}

// amounts are what the run asked for, or might use.
func (v *View) amounts(of side) Amounts {
	whole := v.pod(of)
	if v.Container == "" {
		return whole
	}
	out := v.container(v.Container, of)
	if v.Container != v.leading() {
		return out
	}
	// What is given to the pod and to none of its containers goes with the leading one.
	given := v.steady(of)
	given.raise(v.start(of))
	for name, n := range whole {
		_, limited := out[name]
		_, podLimited := of.in(&v.Pod.Spec.Resources)[name]
		switch rest := n - given[name]; {
		case of == limits && !limited && !podLimited: // the overhead makes none
		case n == unreadable || given[name] == unreadable:
			out[name] = unreadable
		case rest > 0:
			out.Add(Amounts{name: rest})
		}
	}
	return out
}

// container are the amounts of one container: those that are in effect, where its status
// says so, else those that it asked for.
func (e *Entry) container(name string, of side) Amounts { return readable(e.quantities(name, of)) }

func (e *Entry) quantities(name string, of side) kube.Quantities {
	for _, list := range [][]kube.ContainerStatus{e.Pod.Status.ContainerStatuses, e.Pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].Resources != nil {
				return of.in(list[i].Resources)
			}
		}
	}
	if c, _ := e.Find(name); c != nil {
		return of.in(&c.Resources)
	}
	return nil
}

// problem is why an amount of a resource is unreadable.
func (e *Entry) problem(of side, name string) error {
	all := []kube.Quantities{of.in(&e.Pod.Spec.Resources), e.Pod.Spec.Overhead}
	for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers, e.Pod.Spec.EphemeralContainers) {
		all = append(all, e.quantities(c.Name, of))
	}
	for _, q := range all {
		if _, some := q[name]; some {
			if _, err := amount(q, name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s: unreadable", name)
}

// leading is the first main container.
func (e *Entry) leading() string {
	if len(e.Pod.Spec.Containers) == 0 {
		return ""
	}
	return e.Pod.Spec.Containers[0].Name
}

// steady is the sum over the containers that run beside each other.
func (e *Entry) steady(of side) Amounts {
	sum := Amounts{}
	for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers) {
		if _, kind := e.Find(c.Name); kind != Init {
			sum.Add(e.container(c.Name, of))
		}
	}
	return sum
}

// start is the most that the pod needs while its init containers run: each of them beside
// the sidecars that came before it.
func (e *Entry) start(of side) Amounts {
	most, sidecars := Amounts{}, Amounts{}
	for _, c := range e.Pod.Spec.InitContainers {
		one := e.container(c.Name, of)
		if c.RestartPolicy == "Always" {
			sidecars.Add(one)
			continue
		}
		one.Add(sidecars)
		most.raise(one)
	}
	return most
}

// pod is what the scheduler reserves for the pod: the greater of what its containers ask
// for beside each other and one after the other, or what the pod itself asks for, and the
// overhead of its runtime.
func (e *Entry) pod(of side) Amounts {
	sum := e.steady(of)
	sum.raise(e.start(of))
	maps.Copy(sum, readable(of.in(&e.Pod.Spec.Resources)))
	overhead := readable(e.Pod.Spec.Overhead)
	if of == limits { // as in Kubernetes: it makes no limit where there is none
		maps.DeleteFunc(overhead, func(name string, _ int64) bool { return sum[name] == 0 })
	}
	sum.Add(overhead)
	return sum
}
