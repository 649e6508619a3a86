package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// withClaim is a pod with one container that uses a claim.
func withClaim(devices ...Device) *Entry {
	e := New()
	e.Pod.Spec.ResourceClaims = []kube.PodClaim{{Name: "gpu", Template: "t"}}
	e.Pod.Status.ResourceClaimStatuses = []kube.PodClaimStatus{{Name: "gpu", Object: "a-gpu-x"}}
	e.Pod.Spec.Containers = []kube.Container{{Name: "a", Resources: kube.Resources{Claims: []kube.ClaimRef{{Name: "gpu"}}}}}
	e.Claims = map[string]*Claim{"a-gpu-x": {Devices: devices}}
	return e
}

func TestClaim_Devices_CountByDriverTypeAndProfile(t *testing.T) {
	const unknown = -1
	device := func(driver string, kind *DeviceKind) Device {
		return Device{Request: "r", Driver: driver, Name: "d", Kind: kind}
	}
	whole := device("gpu.nvidia.com", &DeviceKind{Type: "gpu", Model: "NVIDIA-H100"})
	for _, c := range []struct {
		name        string
		devices     []Device
		gpus, milli int64
	}{
		{"none", nil, 0, 0},
		{"two cards", []Device{whole, whole}, 2, 2000},
		{"AMD", []Device{device("gpu.amd.com", &DeviceKind{Type: "amdgpu"})}, 1, 1000},
		{"no type", []Device{device("gpu.intel.com", &DeviceKind{Model: "Max"})}, 1, 1000},
		{"no GPU", []Device{device("dra.cpu", nil), whole}, 1, 1000},
		{"MIG", []Device{device("gpu.nvidia.com", &DeviceKind{Type: "mig", Profile: "3g.20gb"}), whole}, 1, 1429},
		{"two slices round once", []Device{device("gpu.nvidia.com", &DeviceKind{Type: "mig", Profile: "1g.5gb"}), device("gpu.nvidia.com", &DeviceKind{Type: "mig", Profile: "3g.20gb"})}, 0, 571},
		{"MIG of one of two models", []Device{device("gpu.nvidia.com", &DeviceKind{Profile: "1g.24gb", Model: "NVIDIA-RTX-PRO-6000"})}, 0, 250},
		{"MIG of an unknown profile", []Device{device("gpu.nvidia.com", &DeviceKind{Type: "mig", Profile: "9g.5gb"})}, unknown, unknown},
		{"MIG without a profile", []Device{device("gpu.nvidia.com", &DeviceKind{Type: "mig"})}, unknown, unknown},
		{"partition", []Device{whole, device("gpu.amd.com", &DeviceKind{Type: "amdgpu-partition"})}, unknown, unknown},
		{"not in a slice", []Device{device("gpu.nvidia.com", nil)}, unknown, unknown},
		{"part of a card", []Device{{Driver: "gpu.nvidia.com", Name: "d", Shared: true, Kind: whole.Kind}}, unknown, unknown},
	} {
		for attribute, want := range map[string]int64{"gpus": c.gpus, "milli_gpus": c.milli} {
			got, ok, why := valueOf(t, &View{Entry: withClaim(c.devices...), Container: "a"}, attribute)
			if ok == (want == unknown) || ok && got.Int() != want || !ok && !strings.Contains(why, "device d") {
				t.Errorf("%s: %s %v, %t (%s); want %d", c.name, attribute, got, ok, why, want)
			}
		}
	}
}

func TestClaim_Model_IsThatOfTheNodeElseOfTheDevices(t *testing.T) {
	kind := func(model string) *DeviceKind { return &DeviceKind{Type: "gpu", Model: model} }
	for _, c := range []struct {
		node   string
		models []string
		want   string
	}{{"", []string{"H100", "H100"}, "H100"}, {"", []string{"H100", "A30"}, ""}, {"A100", []string{"H100"}, "A100"}, {"A100", nil, ""}} {
		var devices []Device
		for _, m := range c.models {
			devices = append(devices, Device{Driver: "gpu.nvidia.com", Kind: kind(m)})
		}
		e := withClaim(devices...)
		e.Node = map[string]string{"model": c.node}
		s := &subject{View: &View{Entry: e, Container: "a"}, rules: gpuRules(), devices: devices}
		s.rules.Model = []string{"model"}
		if got := s.gpuModel(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// claimed draws a pod with claims and containers that use them in every way.
func claimed(r *rand.Rand) (e *Entry, devices int) {
	e = New()
	requests := []string{"x", "y", "z"}
	uses := func() (out []kube.ClaimRef) {
		for _, claim := range []string{"one", "two", "ext"} {
			for _, request := range append(requests, "") {
				if r.IntN(5) == 0 {
					out = append(out, kube.ClaimRef{Name: claim, Request: request})
				}
			}
		}
		return out
	}
	for i := range 1 + r.IntN(3) {
		e.Pod.Spec.Containers = append(e.Pod.Spec.Containers, kube.Container{Name: fmt.Sprint("main", i), Resources: kube.Resources{Claims: uses()}})
	}
	for i := range r.IntN(3) {
		e.Pod.Spec.InitContainers = append(e.Pod.Spec.InitContainers, kube.Container{Name: fmt.Sprint("side", i), RestartPolicy: "Always", Resources: kube.Resources{Claims: uses()}})
	}
	e.Claims = map[string]*Claim{}
	for i, name := range []string{"one", "two"} {
		e.Pod.Spec.ResourceClaims = append(e.Pod.Spec.ResourceClaims, kube.PodClaim{Name: name, Object: "object-" + name})
		c := &Claim{}
		for range r.IntN(4) {
			request := requests[r.IntN(3)] + []string{"", "/sub"}[r.IntN(2)]
			c.Devices = append(c.Devices, Device{Request: request, Driver: "gpu.nvidia.com", Name: fmt.Sprint(i, devices), Kind: &DeviceKind{Type: "gpu"}})
			devices++
		}
		e.Claims["object-"+name] = c
	}
	return e, devices
}

func TestClaim_AnyUseByContainers_EachDeviceCountsOnce(t *testing.T) {
	for seed := range uint64(3000) {
		e, devices := claimed(rand.New(rand.NewPCG(seed, 3)))
		sum := int64(0)
		for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers) {
			got, ok, why := valueOf(t, &View{Entry: e, Container: c.Name}, "gpus")
			if !ok {
				t.Fatalf("seed %d: %s", seed, why)
			}
			sum += got.Int()
		}
		pod, _, _ := valueOf(t, &View{Entry: e}, "gpus")
		if sum != int64(devices) || pod.Int() != sum {
			t.Fatalf("seed %d: the containers have %d, the pod %d of %d devices: %+v", seed, sum, pod.Int(), devices, e.Pod.Spec)
		}
	}
}

// What a claim would have counted for is unread without it, or where others share it.
func TestClaim_UnreadOrShared_NoFigureIsTooSmall(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		e, _ := claimed(r)
		before := map[string]int64{}
		names := []string{""}
		for _, c := range slices.Concat(e.Pod.Spec.Containers, e.Pod.Spec.InitContainers) {
			names = append(names, c.Name)
		}
		for _, name := range names {
			got, _, _ := valueOf(t, &View{Entry: e, Container: name}, "gpus")
			before[name] = got.Int()
		}
		if r.IntN(2) == 0 {
			e.Claims["object-one"].Shared = true
		} else {
			delete(e.Claims, "object-one")
		}
		for _, name := range names {
			for _, attribute := range []string{"gpus", "milli_gpus", "devices"} {
				got, ok, why := valueOf(t, &View{Entry: e, Container: name}, attribute)
				switch {
				case !ok && !strings.Contains(why, "resource claim one"):
					t.Fatalf("seed %d: %s", seed, why)
				case ok && attribute == "gpus" && got.Int() != before[name]:
					t.Fatalf("seed %d: %q has %d, had %d: %+v", seed, name, got.Int(), before[name], e.Pod.Spec)
				}
			}
		}
	}
}

func TestClaim_OfExtendedResource_CountsOnlyClassesOfDevices(t *testing.T) {
	e := New()
	e.Pod.Spec.Containers = []kube.Container{{Name: "a", Resources: kube.Resources{Requests: kube.Quantities{implicit + "gpu.nvidia.com": "1", "nvidia.com/gpu": "1"}}}}
	if _, ok, why := valueOf(t, &View{Entry: e, Container: "a"}, "gpus"); ok || !strings.Contains(why, "gpu.nvidia.com") {
		t.Errorf("without its claim: %t, %s", ok, why)
	}
	x := &kube.ExtendedClaim{Object: "a-extended"}
	for resource, request := range map[string]string{implicit + "gpu.nvidia.com": "r0", "nvidia.com/gpu": "r1"} {
		x.Mappings = append(x.Mappings, struct {
			Container string `json:"containerName"`
			Resource  string `json:"resourceName"`
			Request   string `json:"requestName"`
		}{"a", resource, request})
	}
	e.Pod.Status.ExtendedClaim = x
	e.Claims = map[string]*Claim{"a-extended": {Devices: []Device{{Request: "r0", Driver: "gpu.nvidia.com", Kind: &DeviceKind{}}, {Request: "r1", Driver: "gpu.nvidia.com", Kind: &DeviceKind{}}}}}
	if got, ok, why := valueOf(t, &View{Entry: e, Container: "a"}, "gpus"); !ok || got.Int() != 2 {
		t.Errorf("%v, %t, %s", got, ok, why)
	}
}
