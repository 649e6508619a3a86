package run

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Claim is what is known of a ResourceClaim of a pod.
type Claim struct {
	Devices []Device `json:"devices,omitempty"` // without those for administration
	Shared  bool     `json:"shared,omitempty"`  // several pods had it at once
}

// Device is a device that a claim has got.
type Device struct {
	Request string      `json:"request"`
	Driver  string      `json:"driver"`
	Pool    string      `json:"pool,omitempty"`
	Name    string      `json:"name"`
	Shared  bool        `json:"shared,omitempty"` // other claims may have the rest of it
	Kind    *DeviceKind `json:"kind,omitempty"`   // nil: no ResourceSlice with it was read
}

// DeviceKind is what the driver publishes of a device.
type DeviceKind struct {
	Type    string `json:"type,omitempty"`
	Profile string `json:"profile,omitempty"` // of a slice by MIG
	Model   string `json:"model,omitempty"`
}

// DeviceKey names a device in the cluster.
func DeviceKey(driver, pool, name string) string { return driver + "/" + pool + "/" + name }

// KindOf is what a ResourceSlice says of a device. A model has no spaces, as in the labels of
// nodes.
func KindOf(driver string, d *kube.Device) *DeviceKind {
	model := cmp.Or(d.Text(driver, "productName"), d.Text(driver, "model"))
	return &DeviceKind{Type: d.Text(driver, "type"), Profile: d.Text(driver, "profile"), Model: strings.ReplaceAll(model, " ", "-")}
}

// implicit begins the name of an extended resource that stands for a class of devices.
const implicit = "deviceclass.resource.kubernetes.io/"

// claim is a claim of a pod with the containers that use it.
type claim struct {
	names  []string // in the pod
	object string   // "": not known
	uses   []use
	part   bool // what is not in uses is counted by other means
}

// use is that a container uses the devices of a request of a claim; "": of all requests.
type use struct{ container, request string }

// podClaims are the resource claims of the pod.
func (e *Entry) podClaims() (out []claim) {
	for _, c := range e.Pod.Spec.ResourceClaims {
		object, needed := c.Object, true
		for _, s := range e.Pod.Status.ResourceClaimStatuses {
			if s.Name == c.Name {
				object = cmp.Or(object, s.Object)
				needed = object != ""
			}
		}
		same := slices.IndexFunc(out, func(o claim) bool { return object != "" && o.object == object })
		switch {
		case same >= 0:
			out[same].names = append(out[same].names, c.Name)
		case needed:
			out = append(out, claim{names: []string{c.Name}, object: object})
		}
	}
	return e.withUses(out)
}

// withUses adds to claims which containers use them, and the claim for classes of devices that
// containers ask for as resources.
func (e *Entry) withUses(out []claim) []claim {
	extended := claim{part: true}
	for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers) {
		for _, r := range c.Resources.Claims {
			for i := range out {
				if slices.Contains(out[i].names, r.Name) {
					out[i].uses = append(out[i].uses, use{c.Name, r.Request})
				}
			}
		}
		for name := range c.Resources.Requests {
			if class, ok := strings.CutPrefix(name, implicit); ok {
				extended.names = []string{class}
				extended.uses = append(extended.uses, e.extendedUses(c.Name, name)...)
			}
		}
	}
	if x := e.Pod.Status.ExtendedClaim; x != nil {
		extended.object = x.Object
	}
	if len(extended.uses) > 0 {
		out = append(out, extended)
	}
	return out
}

// extendedUses are the requests of the claim for extended resources that stand for a
// resource of a container.
func (e *Entry) extendedUses(container, resource string) (out []use) {
	x := e.Pod.Status.ExtendedClaim
	if x == nil {
		return []use{{container: container}}
	}
	for _, m := range x.Mappings {
		if m.Container == container && m.Resource == resource {
			out = append(out, use{container, m.Request})
		}
	}
	return out
}

// UnreadClaims are the names of the ResourceClaims of the pod of which nothing is known.
func (e *Entry) UnreadClaims() (out []string) {
	for _, c := range e.podClaims() {
		if c.object != "" && e.Claims[c.object] == nil {
			out = append(out, c.object)
		}
	}
	return out
}

// ReadClaim notes what a ResourceClaim says, if it is the pod's at this time.
func (e *Entry) ReadClaim(c *kube.Claim) {
	mine := false
	for _, r := range c.Status.ReservedFor {
		mine = mine || r.UID == e.UID()
	}
	if !mine || c.Status.Allocation == nil {
		return
	}
	out := &Claim{Shared: len(c.Status.ReservedFor) > 1}
	for _, d := range c.Status.Allocation.Devices.Results {
		if !d.AdminAccess {
			out.Devices = append(out.Devices, Device{Request: d.Request, Driver: d.Driver, Pool: d.Pool, Name: d.Device,
				Shared: d.ShareID != "" || len(d.Consumed) > 0})
		}
	}
	if e.Claims == nil {
		e.Claims = map[string]*Claim{}
	}
	if old := e.Claims[c.Metadata.Name]; old != nil { // what was found of its devices stays
		old.Shared = old.Shared || out.Shared
		return
	}
	e.Claims[c.Metadata.Name] = out
}

// countsDevices reports whether devices of a request of a claim count for the run: for the pod, for
// each init container that uses them, and for the first of the containers beside each other
// that does. What no container uses goes with the leading one.
func (v *View) countsDevices(c *claim, request string) bool {
	covers := func(u use) bool { return u.request == "" || u.request == request }
	uses := func(name string) bool {
		return slices.ContainsFunc(c.uses, func(u use) bool { return u.container == name && covers(u) })
	}
	_, kind := v.Find(v.Container)
	switch {
	case c.part && !slices.ContainsFunc(c.uses, covers):
		return false
	case v.Container == "":
		return true
	case kind == Init:
		return uses(v.Container)
	}
	for _, other := range slices.Concat(v.Pod.Spec.Containers, v.Pod.Spec.InitContainers) {
		if _, kind := v.Find(other.Name); kind != Init && uses(other.Name) {
			return other.Name == v.Container
		}
	}
	return v.Container == v.leadingContainer() && !slices.ContainsFunc(c.uses, covers)
}

// countedDevices are those that count for the run, as far as they are known; the error names a
// claim of which they are not.
func (v *View) countedDevices() (out []Device, err error) {
	for _, c := range v.podClaims() {
		known := v.Claims[c.object]
		if known == nil {
			requests := []use{{}}
			if slices.ContainsFunc(append(requests, c.uses...), func(u use) bool { return v.countsDevices(&c, u.request) }) {
				err = fmt.Errorf("resource claim %s: not read while the pod had it", c.names[0])
			}
			continue
		}
		for _, d := range known.Devices {
			request, _, _ := strings.Cut(d.Request, "/")
			switch {
			case !v.countsDevices(&c, request):
			case known.Shared:
				err = fmt.Errorf("resource claim %s: several pods share it", c.names[0])
			default:
				out = append(out, d)
			}
		}
	}
	return out, err
}

// cardShare returns how much of a card a device is, and whether it is a whole card that is not
// cut; nil for devices that are not GPUs.
func (r *Rules) cardShare(d *Device) (part *big.Rat, whole bool, err error) {
	if !r.Driver(d.Driver) {
		return nil, false, nil
	}
	where := d.Driver + " device " + d.Name
	switch {
	case d.Shared:
		return nil, false, fmt.Errorf("%s: several claims may share it", where)
	case d.Kind == nil:
		return nil, false, fmt.Errorf("%s: not found in a ResourceSlice", where)
	case d.Kind.Profile != "":
		if part, err = mig.Share(d.Kind.Profile, d.Kind.Model); err != nil {
			return nil, false, fmt.Errorf("%s: %w", where, err)
		}
		return part, false, nil
	case slices.Contains([]string{"", "gpu", "amdgpu"}, d.Kind.Type):
		return big.NewRat(1, 1), true, nil
	}
	return nil, false, fmt.Errorf("%s: unknown type %q", where, d.Kind.Type)
}

// deviceCards are the cards of the run's devices and how many of them are whole. What cannot
// be told makes the value unsure.
func (s *subject) deviceCards() (sum *big.Rat, whole int64) {
	sum = new(big.Rat)
	if s.devicesErr != nil && s.unsure == nil {
		s.unsure = s.devicesErr
	}
	for i := range s.devices {
		part, uncut, err := s.rules.cardShare(&s.devices[i])
		switch {
		case err != nil:
			s.unsure = cmp.Or(s.unsure, err)
		case part != nil:
			sum.Add(sum, part)
		}
		if uncut {
			whole++
		}
	}
	return sum, whole
}

// countDevices counts the devices of the run by their driver.
func (s *subject) countDevices() sdk.Value {
	s.unsure = s.devicesErr
	count := map[string]int64{}
	for _, d := range s.devices {
		count[d.Driver]++
	}
	out := make(map[string]sdk.Value, len(count))
	for driver, n := range count {
		out[driver] = sdk.Int(n)
	}
	return sdk.Map(out)
}
