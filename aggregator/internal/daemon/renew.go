package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// renewTime bounds one renewal of the own certificate: nodes are asked one after the other.
const renewTime = 30 * time.Second

// renewOwn renews this node's certificate when it is time, until ctx ends.
func (a *Aggregator) renewOwn(ctx context.Context) error {
	for {
		cert := a.set.Keys.Leaf()
		if time.Now().After(identity.RenewAt(cert)) {
			a.renewNow(ctx, cert)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(identity.RenewPause(cert)):
		}
	}
}

func (a *Aggregator) renewNow(ctx context.Context, cert *x509.Certificate) {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	der, err := a.renewCertificate(ctx, cert)
	if err == nil {
		err = a.set.Keys.Take(der)
	}
	if errors.Is(err, identity.ErrForeign) {
		err = nil // its own site looks after it
	}
	if a.set.Keys.NoteRenewal(errorText(err)) && err != nil {
		a.set.Log.Warn("this node's certificate is not renewed; it is tried again", "ends", cert.NotAfter.UTC(), "error", err)
	}
}

// renewCertificate returns a new certificate for the key of one of this node or of an agent, signed
// here or by another node. The error wraps [identity.ErrForeign] when no node has the
// authority that has signed the old one.
func (a *Aggregator) renewCertificate(ctx context.Context, old *x509.Certificate) ([]byte, error) {
	next, err := a.signRenewal(a.set.Name, old)
	if errors.Is(err, identity.ErrForeign) {
		return a.peer.Renew(ctx, old)
	}
	if err != nil {
		return nil, err
	}
	return next.Raw, nil
}

// signRenewal renews a certificate for the node of that name: its own, or that of an agent that
// this cluster pulls from. A machine that was replaced gets none.
func (a *Aggregator) signRenewal(caller string, old *x509.Certificate) (*x509.Certificate, error) {
	if a.set.Authority == nil {
		return nil, identity.ErrForeign
	}
	next, err := a.set.Authority.Reissue(old, time.Now())
	if err != nil {
		return nil, err
	}
	id, err := identity.Of(old)
	if err == nil {
		err = a.mayRenew(caller, id, sha256.Sum256(old.RawSubjectPublicKeyInfo))
	}
	if err != nil {
		return nil, err
	}
	a.set.Log.Info("audit", "who", "aggregator/"+caller, "result", "certificate renewed", "of", id.String(), "ends", next.NotAfter.UTC())
	return next, nil
}

// mayRenew says why the certificate of a machine, with that key, is not renewed for a node.
func (a *Aggregator) mayRenew(caller string, id identity.Identity, key identity.Digest) error {
	list, err := store.With(a.store, func(v *store.View) (list []enrol.Machine, err error) {
		if id.Role == identity.Agent {
			return enrol.Agents(v)
		}
		return enrol.Nodes(v)
	})
	if err != nil {
		return err
	}
	if id.Role == identity.Agent {
		if !slices.Contains(a.manager.Names(), id.Name) {
			return fmt.Errorf("this cluster does not pull from the agent %s", id.Name)
		}
		list = slices.DeleteFunc(list, func(m enrol.Machine) bool { return a.pulled.isConfigured(m.Name) })
	} else if id.Name != caller {
		return fmt.Errorf("%s asks for the certificate of %s", caller, id.Name)
	}
	for _, m := range list {
		if m.Name == id.Name && m.Key != key {
			return fmt.Errorf("another machine has joined as %s since: give this one another name, or remove it", id)
		}
	}
	return nil
}

// isConfigured reports whether the configuration has an agent of that name.
func (p *pulled) isConfigured(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.configured, func(a ingest.Agent) bool { return a.Name == name })
}
