package source

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// claiming is a pod that has claimed devices by an object.
func claiming(name, object string, ofTemplate bool, phase string, status ...kube.ContainerStatus) kube.Pod {
	p := pod("phys", name, phase, status...)
	p.Spec.Containers[0].Resources = kube.Resources{Requests: kube.Quantities{"cpu": "1"}, Claims: []kube.ClaimRef{{Name: "gpu"}}}
	p.Spec.ResourceClaims = []kube.PodClaim{{Name: "gpu", Object: object}}
	if ofTemplate {
		p.Spec.ResourceClaims = []kube.PodClaim{{Name: "gpu", Template: "gpu"}}
		p.Status.ResourceClaimStatuses = []kube.PodClaimStatus{{Name: "gpu", Object: object}}
	}
	return p
}

// allocated is a claim with devices, reserved for pods.
func allocated(name string, devices []kube.Allocated, pods ...string) kube.Claim {
	c := kube.Claim{Metadata: kube.Meta{Namespace: "phys", Name: name}}
	c.Status.Allocation = new(struct {
		Devices struct {
			Results []kube.Allocated `json:"results"`
		} `json:"devices"`
	})
	c.Status.Allocation.Devices.Results = devices
	for _, p := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, struct {
			UID string `json:"uid"`
		}{"uid-" + p})
	}
	return c
}

// gpu is a device of NVIDIA's driver.
func gpu(name string) kube.Allocated {
	return kube.Allocated{Request: "r", Driver: "gpu.nvidia.com", Pool: "n1", Device: name}
}

// putSlice publishes a card and a slice of one.
func putSlice(s *site) {
	c := kube.Slice{Metadata: kube.Meta{Name: "n1-gpu"}}
	c.Spec.Driver, c.Spec.Pool.Name, c.Spec.Pool.Generation = "gpu.nvidia.com", "n1", 2
	text := func(pairs ...string) map[string]kube.DeviceAttribute {
		out := map[string]kube.DeviceAttribute{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = kube.DeviceAttribute{Text: pairs[i+1]}
		}
		return out
	}
	c.Spec.Devices = []kube.Device{
		{Name: "gpu-0", Attributes: text("type", "gpu", "productName", "NVIDIA H100")},
		{Name: "gpu-1-mig", Attributes: text("gpu.nvidia.com/type", "mig", "gpu.nvidia.com/profile", "3g.40gb", "productName", "NVIDIA H100")},
	}
	s.server.PutSlice(c)
	c.Metadata.Name, c.Spec.Pool.Generation = "n1-old", 1
	c.Spec.Devices = []kube.Device{{Name: "gpu-0", Attributes: text("type", "mig", "profile", "1g.10gb")}}
	s.server.PutSlice(c)
}

// figures are the GPUs of a run, as the source tells them.
func (s *site) figures(run string) (gpus, milli sdk.Value, unread map[string]string) {
	s.t.Helper()
	gpus, milli = s.value(run, "gpus"), s.value(run, "milli_gpus")
	unread = map[string]string{}
	for _, u := range s.soFar().jobs[run].Unread {
		unread[u.Attribute] = u.Problem
	}
	return gpus, milli, unread
}

func (s *site) unreadGPUs(run, why string) {
	s.t.Helper()
	gpus, milli, unread := s.figures(run)
	if !gpus.IsNull() || !milli.IsNull() || !strings.Contains(unread["gpus"], why) || !strings.Contains(unread["milli_gpus"], why) {
		s.t.Errorf("%s: gpus %v, milli_gpus %v, unread %v; want %q", run, gpus, milli, unread, why)
	}
}

func TestClaim_GoneWithItsPod_CountsFromWhileItWasThere(t *testing.T) {
	s := newSite(t)
	putSlice(s)
	admin := gpu("gpu-7")
	admin.AdminAccess = true
	s.server.PutClaim(allocated("a-gpu-x", []kube.Allocated{gpu("gpu-0"), gpu("gpu-1-mig"), admin, {Request: "r", Driver: "nic.example.com", Pool: "p", Device: "eth1"}}, "a"))
	s.start()
	s.server.Put(claiming("a", "a-gpu-x", true, kube.Running, running(0, 1)))
	s.seen()
	s.kill()
	s.server.DeleteClaim("phys", "a-gpu-x")
	s.server.Put(claiming("a", "a-gpu-x", true, kube.Succeeded, over(0, 1, 9, 0)))
	s.server.Delete("phys", "a", at(9))
	s.start()
	s.seen()
	name := runName("a", "main", 1)
	s.wantRuns(name)
	gpus, milli, unread := s.figures(name)
	if gpus.Int() != 1 || milli.Int() != 1429 || len(unread) > 0 || s.value(name, "gpu_model").Str() != "NVIDIA-H100" {
		t.Errorf("gpus %v, milli_gpus %v, unread %v, model %v", gpus, milli, unread, s.value(name, "gpu_model"))
	}
	if got := s.value(name, "devices").Map(); got["gpu.nvidia.com"].Int() != 2 || got["nic.example.com"].Int() != 1 {
		t.Errorf("devices %v", got)
	}
}

func TestClaim_ThatCannotBeRead_MakesGPUsUnknownAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		claim *kube.Claim
		deny  string
		why   string
	}{
		"gone":          {nil, "", "resource claim gpu: not read"},
		"of another":    {new(allocated("a-gpu-x", []kube.Allocated{gpu("gpu-0")}, "b")), "", "resource claim gpu: not read"},
		"without right": {new(allocated("a-gpu-x", []kube.Allocated{gpu("gpu-0")}, "a")), "get resourceclaims", "resource claim gpu: not read"},
		"no slices":     {new(allocated("a-gpu-x", []kube.Allocated{gpu("gpu-0")}, "a")), "list resourceslices", "gpu-0: not found"},
		"not published": {new(allocated("a-gpu-x", []kube.Allocated{gpu("gpu-9")}, "a")), "", "gpu-9: not found"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			putSlice(s)
			s.server.Rights = rights(t, "rbac.yaml")
			delete(s.server.Rights, c.deny)
			if c.claim != nil {
				s.server.PutClaim(*c.claim)
			}
			s.server.Put(claiming("a", "a-gpu-x", true, kube.Running, running(0, 1)))
			s.start()
			s.seen()
			s.wantRuns(runName("a", "main", 1) + " open")
			s.unreadGPUs(runName("a", "main", 1), c.why)
			if errs := s.soFar().collected; len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

func TestClaim_OfSeveralPods_IsUnknownForEach(t *testing.T) {
	s := newSite(t)
	putSlice(s)
	devices := []kube.Allocated{gpu("gpu-0")}
	s.server.PutClaim(allocated("shared", devices, "a"))
	s.start()
	s.server.Put(claiming("a", "shared", false, kube.Running, running(0, 1)))
	s.seen()
	a, b, c := runName("a", "main", 1), runName("b", "main", 2), runName("c", "main", 9)
	if gpus, _, _ := s.figures(a); gpus.Int() != 1 {
		t.Errorf("alone: %v", gpus)
	}
	s.server.PutClaim(allocated("shared", devices, "a", "b"))
	s.server.Put(claiming("b", "shared", false, kube.Running, running(0, 2)))
	s.seen()
	s.unreadGPUs(a, "several pods share it")
	s.unreadGPUs(b, "several pods share it")
	s.server.Put(claiming("a", "shared", false, kube.Succeeded, over(0, 1, 8, 0)))
	s.server.Put(claiming("b", "shared", false, kube.Succeeded, over(0, 2, 8, 0)))
	s.server.PutClaim(allocated("shared", devices, "c")) // one after the other do not share
	s.server.Put(claiming("c", "shared", false, kube.Running, running(0, 9)))
	s.seen()
	s.unreadGPUs(a, "several pods share it")
	if gpus, _, _ := s.figures(c); gpus.Int() != 1 {
		t.Errorf("after the others: %v", gpus)
	}
	if sent := s.soFar().sent; !slices.Contains(sent, a) {
		t.Errorf("sent %v", sent)
	}
}

func TestRights_TakenAway_AreNamedAndTheRestGoesOn(t *testing.T) {
	for name, restart := range map[string]bool{"while it runs": false, "before a restart": true} {
		t.Run(name, func(t *testing.T) { rightsTakenAway(t, restart) })
	}
}

func rightsTakenAway(t *testing.T, restart bool) {
	s := newSite(t)
	putSlice(s)
	s.server.Rights = rights(t, "rbac.yaml")
	s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n1"}})
	s.server.PutNamespace(kube.Namespace{Metadata: kube.Meta{Name: "phys", Labels: map[string]string{"project": "ERC-12"}}})
	of := func(p kube.Pod, job string) kube.Pod {
		p.Metadata.OwnerReferences = []kube.Owner{{Kind: "Job", Name: job, UID: "uid-" + job, Controller: true}}
		return p
	}
	s.server.PutClaim(allocated("x", []kube.Allocated{gpu("gpu-0")}, "a"))
	s.server.Put(of(claiming("a", "x", false, kube.Running, running(0, 1)), "j"))
	s.start()
	s.seen()
	if restart {
		s.stop()
	}
	may := s.server.SetRights(map[string]bool{"list pods": true, "watch pods": true, "get pods": true})
	if restart {
		s.start()
	}
	s.server.PutClaim(allocated("y", []kube.Allocated{gpu("gpu-0")}, "b"))
	s.server.PutNode(kube.Node{Metadata: kube.Meta{Name: "n2"}})
	b := of(claiming("b", "y", false, kube.Running, running(0, 2)), "k")
	b.Spec.NodeName = "n2"
	s.server.Put(b)
	name := runName("b", "main", 2)
	s.await("the run", func() bool { s.time = s.time.Add(time.Minute); return s.jobs[name].Run != "" })
	for _, what := range []string{"labels of nodes", "owners of jobs", "devices of claims"} {
		s.await(what+" in the log", func() bool {
			return slices.ContainsFunc(s.logged, func(line string) bool {
				return strings.Contains(line, "the "+what+" is not complete") && strings.Contains(line, "deploy/rbac.yaml")
			})
		})
	}
	var found []string
	for _, f := range s.soFar().jobs[name].Findings {
		found = append(found, f.About)
		if !strings.Contains(f.What, "is forbidden") || !strings.Contains(f.Do, "deploy/rbac.yaml") {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Contains(found, nodeLabels) || !slices.Contains(found, jobOwners) {
		t.Errorf("found %q", found)
	}
	s.server.SetRights(may)
	s.server.PutClaim(allocated("z", []kube.Allocated{gpu("gpu-0")}, "c"))
	s.server.Put(of(claiming("c", "z", false, kube.Running, running(0, 3)), "l"))
	s.await("the devices", func() bool { s.time = s.time.Add(time.Minute); return !valueOf(s.jobs[name], "milli_gpus").IsNull() })
	s.await("nothing is found", func() bool { s.time = s.time.Add(time.Minute); return len(s.jobs[name].Findings) == 0 })
}

// readyNode is a node that takes pods.
func readyNode(name string, has kube.Quantities) kube.Node {
	n := kube.Node{Metadata: kube.Meta{Name: name}}
	n.Status.Allocatable = has
	n.Status.Conditions = []kube.Condition{{Type: "Ready", Status: "True"}}
	return n
}

func TestCapacity_RightToDevicesTakenAway_StaysAsItWas(t *testing.T) {
	for name, restart := range map[string]bool{"while it runs": false, "before a restart": true} {
		t.Run(name, func(t *testing.T) { rightToDevicesTakenAway(t, restart) })
	}
}

func rightToDevicesTakenAway(t *testing.T, restart bool) {
	s := newSite(t)
	putSlice(s)
	s.server.PutNode(readyNode("n1", kube.Quantities{"cpu": "8"}))
	s.server.Rights = rights(t, "rbac.yaml")
	s.start(text("capacity_interval", "0s"))
	s.await("the capacity", func() bool { return len(s.capacity) > 0 })
	if restart {
		s.stop()
	}
	may := s.server.SetRights(nil)
	may = maps.Clone(may)
	delete(may, "list resourceslices")
	s.server.SetRights(may)
	if restart {
		s.start(text("capacity_interval", "0s"))
	}
	s.await("a line in the log", func() bool {
		s.time = s.time.Add(time.Minute)
		return slices.ContainsFunc(s.logged, func(line string) bool { return strings.Contains(line, "resourceslices is forbidden") })
	})
	s.server.PutNode(readyNode("n1", kube.Quantities{"cpu": "16"}))
	s.await("more tries", func() bool { s.time = s.time.Add(time.Minute); return s.time.After(at(300)) })
	if got := s.soFar().capacity; len(got) != 1 {
		t.Errorf("capacities %v", got)
	}
}

func TestCapacity_HasTheGPUsOfResourceSlices(t *testing.T) {
	offered := kube.Slice{Metadata: kube.Meta{Name: "n1-gpu"}}
	offered.Spec.Driver, offered.Spec.Pool.Name, offered.Spec.Node = "gpu.nvidia.com", "n1", "n1"
	for _, name := range []string{"gpu-0", "gpu-1"} {
		offered.Spec.Devices = append(offered.Spec.Devices, kube.Device{Name: name, Attributes: map[string]kube.DeviceAttribute{"type": {Text: "gpu"}, "productName": {Text: "NVIDIA H100"}}})
	}
	devices := []sdk.Amount{{Name: "GPUs", Amount: 2}, {Name: "GPUs:NVIDIA-H100", Amount: 2}, {Name: "Memory"}, {Name: "MilliCores", Amount: 8000}, {Name: "MilliGPUs", Amount: 2000}}
	none := []sdk.Amount{{Name: "Memory"}, {Name: "MilliCores", Amount: 8000}}
	plugged := []sdk.Amount{{Name: "GPUs", Amount: 4}, {Name: "Memory"}, {Name: "MilliCores", Amount: 8000}, {Name: "MilliGPUs", Amount: 4000}, {Name: "nvidia.com/gpu", Amount: 4}}
	for name, c := range map[string]struct {
		node   kube.Node
		denied bool
		want   []sdk.Amount
	}{
		"by devices":           {readyNode("n1", kube.Quantities{"cpu": "8"}), false, devices},
		"of another node":      {readyNode("n2", kube.Quantities{"cpu": "8"}), false, none},
		"by a plugin likewise": {readyNode("n1", kube.Quantities{"cpu": "8", "nvidia.com/gpu": "4"}), false, plugged},
		"without right":        {readyNode("n1", kube.Quantities{"cpu": "8"}), true, none},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.server.Deny["resourceslices"] = c.denied
			s.server.PutNode(c.node)
			s.server.PutSlice(offered)
			s.start()
			s.await("the capacity", func() bool { return len(s.capacity) > 0 })
			if got := s.soFar().capacity[0].Components; !slices.Equal(got, c.want) {
				t.Errorf("capacity %v, want %v", got, c.want)
			}
		})
	}
}
