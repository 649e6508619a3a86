package ingest

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"google.golang.org/grpc/credentials"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// renewTime bounds the renewal of one certificate: nodes are asked one after the other.
const renewTime = 30 * time.Second

// noteCertificate notes the certificate that the agent has proved. A connection that is older than
// the last renewal shows the one before.
func (l *Loop) noteCertificate(info credentials.AuthInfo) {
	proved, ok := info.(credentials.TLSInfo)
	if !ok || len(proved.State.PeerCertificates) == 0 {
		return
	}
	c := proved.State.PeerCertificates[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replaced != nil && c.Equal(l.replaced) || l.cert != nil && c.Equal(l.cert) {
		return
	}
	l.replaced = nil
	l.keepCertificate(c)
}

// keepCertificate keeps what is known of the agent's certificate. l.mu is held.
func (l *Loop) keepCertificate(c *x509.Certificate) {
	l.cert, l.status.CertFrom, l.status.CertEnds, l.status.Unrenewed = c, identity.Issued(c), c.NotAfter, ""
}

// renewWhenDue renews the agent's certificate when it is time, until ctx ends.
func (l *Loop) renewWhenDue(ctx context.Context) {
	for l.Renew != nil {
		l.mu.Lock()
		cert := l.cert
		l.mu.Unlock()
		wait := time.Second
		if cert != nil {
			wait = identity.RenewPause(cert)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if cert != nil && time.Now().After(identity.RenewAt(cert)) {
			l.renewCertificate(ctx, cert)
		}
	}
}

// renewCertificate renews the agent's certificate, or tells the agent and the operator why it cannot.
func (l *Loop) renewCertificate(ctx context.Context, old *x509.Certificate) {
	var next *x509.Certificate
	asking, cancel := context.WithTimeout(ctx, renewTime)
	der, err := l.Renew(asking, old)
	cancel()
	if errors.Is(err, identity.ErrForeign) {
		return // its own site looks after it
	}
	if err == nil {
		next, err = x509.ParseCertificate(der)
	}
	req := &bursarv1.CertifyRequest{Certificate: der}
	if err != nil {
		req = &bursarv1.CertifyRequest{Problem: err.Error()}
	}
	giving, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	resp, call := l.Client.Certify(giving, req)
	switch {
	case err != nil:
	case call != nil:
		err = call
	case resp.GetRefused() != "":
		err = errors.New("the agent refuses the new certificate: " + resp.GetRefused())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if before := l.status.Unrenewed; before != err.Error() {
			l.status.Unrenewed = err.Error()
			l.Log.Warn("an agent's certificate is not renewed; it is tried again", "agent", l.Name, "ends", old.NotAfter.UTC(), "error", err)
		}
		return
	}
	l.replaced = old
	l.keepCertificate(next)
	l.Log.Info("an agent's certificate was renewed", "agent", l.Name, "ends", next.NotAfter.UTC())
}
