package source

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// findClaims finds the devices that pods on nodes have by claims. A claim that was made for a
// pod goes with it, so it is asked for while the pod is there, and what was found stays.
func (k *cluster) findClaims(ctx context.Context, p *pass, pods []*run.Entry) error {
	type question struct {
		pod   *run.Entry
		name  string
		claim *kube.Claim
	}
	var asked []*question
	for _, e := range pods {
		if e.FromJob || e.Pod.Spec.NodeName == "" { // before that it has none
			continue
		}
		for _, name := range e.UnreadClaims() {
			asked = append(asked, &question{pod: e, name: name})
		}
	}
	var group errgroup.Group
	group.SetLimit(lookups)
	for _, q := range asked {
		group.Go(func() (err error) {
			q.claim, err = kube.Get[kube.Claim](ctx, p.client, kube.Claims, q.pod.Pod.Metadata.Namespace, q.name)
			if kube.Missing(err) { // it is gone, or the API server has no claims
				q.claim, err = nil, nil
			}
			return err
		})
	}
	err := group.Wait()
	if len(asked) > 0 {
		if err := p.tolerateDenial(ctx, "devices of claims", err); err != nil {
			return err
		}
	}
	for _, q := range asked {
		if q.claim != nil {
			q.pod.ReadClaim(q.claim)
			p.tellSharers(q.claim)
		}
	}
	return k.describeDevices(ctx, p, pods)
}

// tellSharers notes a claim that several pods have with all of them: one may have been read
// when it was alone.
func (p *pass) tellSharers(c *kube.Claim) {
	if len(c.Status.ReservedFor) < 2 {
		return
	}
	for _, r := range c.Status.ReservedFor {
		if e := p.Open[r.UID]; e != nil {
			e.ReadClaim(c)
			p.Touch(e)
		}
	}
}

// describeDevices adds to the GPUs of pods what their drivers publish of them.
func (k *cluster) describeDevices(ctx context.Context, p *pass, pods []*run.Entry) error {
	for _, e := range pods {
		for _, c := range e.Claims {
			for i := range c.Devices {
				d := &c.Devices[i]
				if d.Kind != nil || !p.config.rules.Driver(d.Driver) {
					continue
				}
				key := run.DeviceKey(d.Driver, d.Pool, d.Name)
				if k.devices[key] == nil && k.mayListAgain(p, "devices") {
					if err := p.tolerateDenial(ctx, "attributes of devices", k.listDevices(ctx, p)); err != nil {
						return err
					}
				}
				d.Kind = k.devices[key]
			}
		}
	}
	return nil
}

// listDevices reads the ResourceSlices with GPUs. Of a pool that is being published anew the
// latest generation counts.
func (k *cluster) listDevices(ctx context.Context, p *pass) error {
	k.devices = map[string]*run.DeviceKind{}
	latest := map[string]int64{}
	all, err := k.listSlices(ctx, p)
	for _, s := range all {
		driver, pool := s.Spec.Driver, s.Spec.Pool
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			key := run.DeviceKey(driver, pool.Name, d.Name)
			if k.devices[key] == nil || pool.Generation >= latest[key] {
				k.devices[key], latest[key] = run.KindOf(driver, d), pool.Generation
			}
		}
	}
	return err
}

// listSlices reads the ResourceSlices with GPUs; there are none before Kubernetes 1.34.
func (k *cluster) listSlices(ctx context.Context, p *pass) ([]*kube.Slice, error) {
	all, err := kube.ListAll(ctx, p.client, kube.Slices, func(s *kube.Slice) bool { return p.config.rules.Driver(s.Spec.Driver) })
	if kube.Missing(err) {
		return nil, nil
	}
	return all, err
}
