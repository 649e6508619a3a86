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
		n, problem := parseAmount(q, name)
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		out[name] = n
	}
	return out, err
}

// readableAmounts are quantities as far as they can be read.
func readableAmounts(q kube.Quantities) Amounts {
	out := make(Amounts, len(q))
	for name := range q {
		n, err := parseAmount(q, name)
		if err != nil {
			n = unreadable
		}
		out[name] = n
	}
	return out
}

func parseAmount(q kube.Quantities, name string) (int64, error) {
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
func (a Amounts) Add(b Amounts) { a.mergeWith(b, func(x, y int64) int64 { return x + y }) }

func (a Amounts) raiseTo(b Amounts) { a.mergeWith(b, func(x, y int64) int64 { return max(x, y) }) }

func (a Amounts) mergeWith(b Amounts, both func(x, y int64) int64) {
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

func (of side) quantitiesOf(r *kube.Resources) kube.Quantities {
	if of == limits {
		return r.Limits
	}
	return r.Requests
}

// runAmounts are what the run asked for, or might use.
func (v *View) runAmounts(of side) Amounts {
	whole := v.podAmounts(of)
	if v.Container == "" {
		return whole
	}
	out := v.containerAmounts(v.Container, of)
	if v.Container != v.leadingContainer() {
		return out
	}
	// What is given to the pod and to none of its containers goes with the leading one.
	given := v.steadyAmounts(of)
	given.raiseTo(v.startAmounts(of))
	for name, n := range whole {
		_, limited := out[name]
		_, podLimited := of.quantitiesOf(&v.Pod.Spec.Resources)[name]
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

// containerAmounts are the amounts of one container: those that are in effect, where its status
// says so, else those that it asked for.
func (e *Entry) containerAmounts(name string, of side) Amounts {
	return readableAmounts(e.containerQuantities(name, of))
}

func (e *Entry) containerQuantities(name string, of side) kube.Quantities {
	for _, list := range [][]kube.ContainerStatus{e.Pod.Status.ContainerStatuses, e.Pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].Resources != nil {
				return of.quantitiesOf(list[i].Resources)
			}
		}
	}
	if c, _ := e.Find(name); c != nil {
		return of.quantitiesOf(&c.Resources)
	}
	return nil
}

// amountProblem is why an amount of a resource is unreadable.
func (e *Entry) amountProblem(of side, name string) error {
	all := []kube.Quantities{of.quantitiesOf(&e.Pod.Spec.Resources), e.Pod.Spec.Overhead}
	for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers, e.Pod.Spec.EphemeralContainers) {
		all = append(all, e.containerQuantities(c.Name, of))
	}
	for _, q := range all {
		if _, some := q[name]; some {
			if _, err := parseAmount(q, name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s: unreadable", name)
}

// leadingContainer is the first main container.
func (e *Entry) leadingContainer() string {
	if len(e.Pod.Spec.Containers) == 0 {
		return ""
	}
	return e.Pod.Spec.Containers[0].Name
}

// steadyAmounts is the sum over the containers that run beside each other.
func (e *Entry) steadyAmounts(of side) Amounts {
	sum := Amounts{}
	for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers) {
		if _, kind := e.Find(c.Name); kind != Init {
			sum.Add(e.containerAmounts(c.Name, of))
		}
	}
	return sum
}

// startAmounts is the most that the pod needs while its init containers run: each of them beside
// the sidecars that came before it.
func (e *Entry) startAmounts(of side) Amounts {
	most, sidecars := Amounts{}, Amounts{}
	for _, c := range e.Pod.Spec.InitContainers {
		one := e.containerAmounts(c.Name, of)
		if c.RestartPolicy == "Always" {
			sidecars.Add(one)
			continue
		}
		one.Add(sidecars)
		most.raiseTo(one)
	}
	return most
}

// podAmounts is what the scheduler reserves for the pod: the greater of what its containers ask
// for beside each other and one after the other, or what the pod itself asks for, and the
// overhead of its runtime.
func (e *Entry) podAmounts(of side) Amounts {
	sum := e.steadyAmounts(of)
	sum.raiseTo(e.startAmounts(of))
	maps.Copy(sum, readableAmounts(of.quantitiesOf(&e.Pod.Spec.Resources)))
	overhead := readableAmounts(e.Pod.Spec.Overhead)
	if of == limits { // as in Kubernetes: it makes no limit where there is none
		maps.DeleteFunc(overhead, func(name string, _ int64) bool { return sum[name] == 0 })
	}
	sum.Add(overhead)
	return sum
}
