package field

import (
	"fmt"
	"math"
	"strings"
)

// Resource is one entry of a TRES list.
type Resource struct {
	Name  string // for example cpu, mem, gres/gpu or gres/gpu:a100
	Value string // as written, for example 4, 100M or 00:00:03
}

// TRES reads a list such as "billing=1,cpu=1,gres/gpu:a100=2,mem=100M,node=1".
func TRES(s string) ([]Resource, error) {
	if s == "" {
		return nil, nil
	}
	out := make([]Resource, 0, strings.Count(s, ",")+1)
	for part := range strings.SplitSeq(s, ",") {
		name, value, found := strings.Cut(part, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is no TRES list", s)
		}
		out = append(out, Resource{Name: name, Value: value})
	}
	return out, nil
}

// Amount returns the number of the named resource, memory in bytes. Known is
// false when the list does not have it.
func Amount(list []Resource, name string) (n int64, known bool, err error) {
	for _, r := range list {
		if r.Name == name {
			return Size(r.Value)
		}
	}
	return 0, false, nil
}

// GPUs returns how many GPUs the list has, and how many of each type where the
// list says it.
func GPUs(list []Resource) (total int64, types map[string]int64, err error) {
	return Gres(list, "gpu")
}

// Gres returns how many of a generic resource, such as shard, the list has, and how many of
// each type where the list says it.
func Gres(list []Resource, name string) (total int64, types map[string]int64, err error) {
	name = "gres/" + name
	var sum int64
	whole := false
	for _, r := range list {
		kind, typed := strings.CutPrefix(r.Name, name+":")
		if !typed && r.Name != name {
			continue
		}
		n, _, err := Size(r.Value)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		if n > math.MaxInt64-sum {
			return 0, nil, fmt.Errorf("%s: %d are too many", r.Name, n)
		}
		if !typed {
			total, whole = n, true
			continue
		}
		if types == nil {
			types = map[string]int64{}
		}
		types[kind] += n
		sum += n
	}
	if !whole {
		total = sum
	}
	return total, types, nil
}
