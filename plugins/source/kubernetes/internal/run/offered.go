package run

import (
	"math/big"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Offered is what ResourceSlices offer of GPUs.
type Offered struct {
	Cards  map[string]int64 // whole ones by model; "" where it is not known
	parts  *big.Rat
	labels func(node string) (labels map[string]string, counted bool)
}

// MilliGPUs are all cards and slices of cards in thousandths of a card.
func (o *Offered) MilliGPUs() int64 {
	n, _ := mig.Thousandths(o.parts) // the devices that were listed are few enough
	return n
}

// Offered adds up the GPUs of the latest generation of each pool. Labels returns those of a
// node, and whether its devices count; devices that several nodes can use always do. A card
// and its possible slices overlap: slices count only where nothing else is made of the card.
func (r *Rules) Offered(slices []*kube.Slice, labels func(node string) (map[string]string, bool)) Offered {
	out := Offered{Cards: map[string]int64{}, parts: new(big.Rat), labels: labels}
	latest := map[string]int64{}
	key := func(s *kube.Slice) string { return s.Spec.Driver + "/" + s.Spec.Pool.Name }
	for _, s := range slices {
		latest[key(s)] = max(latest[key(s)], s.Spec.Pool.Generation)
	}
	pools := map[string][]*kube.Slice{}
	for _, s := range slices {
		if r.Driver(s.Spec.Driver) && s.Spec.Pool.Generation == latest[key(s)] {
			pools[key(s)] = append(pools[key(s)], s)
		}
	}
	for _, pool := range pools {
		out.addPool(r, pool)
	}
	return out
}

// addPool adds the devices of a pool.
func (o *Offered) addPool(r *Rules, pool []*kube.Slice) {
	users := map[string]int{} // of a counter set
	whole := map[string]bool{}
	each := func(f func(s *kube.Slice, d *kube.Device, part *big.Rat, uncut bool)) {
		for _, s := range pool {
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				kind := KindOf(s.Spec.Driver, d)
				part, uncut, _ := r.cardShare(&Device{Driver: s.Spec.Driver, Name: d.Name, Kind: kind}) // of an unknown type: nil
				f(s, d, part, uncut)
			}
		}
	}
	each(func(s *kube.Slice, d *kube.Device, _ *big.Rat, uncut bool) {
		for _, c := range d.Counters {
			users[c.Set]++
		}
		if uncut {
			whole[d.Text(s.Spec.Driver, "uuid")] = true
		}
	})
	each(func(s *kube.Slice, d *kube.Device, part *big.Rat, uncut bool) {
		labels, counted := map[string]string(nil), true
		if node := nodeOf(s, d); node != "" {
			labels, counted = o.labels(node)
		}
		parent := d.Text(s.Spec.Driver, "parentUUID")
		overlaps := parent != "" && whole[parent]
		for _, c := range d.Counters {
			overlaps = overlaps || users[c.Set] > 1
		}
		if part == nil || !counted || d.Tainted() || overlaps && !uncut {
			return
		}
		o.parts.Add(o.parts, part)
		if uncut {
			model := Model(labels, r.Model)
			if model == "" {
				model = KindOf(s.Spec.Driver, d).Model
			}
			o.Cards[model]++
		}
	})
}

// nodeOf is the node whose pods can use a device; "" where several can.
func nodeOf(s *kube.Slice, d *kube.Device) string {
	if s.Spec.Node != "" {
		return s.Spec.Node
	}
	return d.Node
}
