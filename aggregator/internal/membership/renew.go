package membership

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// renewTime bounds the question to one node.
const renewTime = 5 * time.Second

// RenewFunc renews a certificate for the node of that name. The error wraps
// [identity.ErrForeign] when this node does not have the authority that has signed it.
type RenewFunc func(caller string, certificate *x509.Certificate) (*x509.Certificate, error)

// Renews has other nodes' requests answered by fn. It must be called before Run.
func (p *Peer) Renews(fn RenewFunc) { p.renews = fn }

// Renew has another node renew a certificate: that of this node, or of an agent. The error
// wraps [identity.ErrForeign] when all other nodes answer that they do not have the
// authority.
func (p *Peer) Renew(ctx context.Context, certificate *x509.Certificate) (der []byte, err error) {
	if p.isAlone() {
		return nil, identity.ErrForeign
	}
	var failed []error
	others := p.otherNodes()
	slices.SortFunc(others, func(a, b cluster.Server) int { return cmp.Compare(a.Addr, b.Addr) })
	for _, node := range others {
		der, err := p.renewBy(ctx, node, certificate)
		if err == nil {
			return der, nil
		}
		if !errors.Is(err, identity.ErrForeign) {
			failed = append(failed, err)
		}
	}
	if len(failed) == 0 {
		return nil, identity.ErrForeign
	}
	return nil, errors.Join(failed...)
}

func (p *Peer) renewBy(ctx context.Context, node cluster.Server, certificate *x509.Certificate) ([]byte, error) {
	client, err := p.links.clientOf(node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	resp, err := client.Renew(ctx, &bursarv1.RenewRequest{Certificate: certificate.Raw})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the node at %s cannot be asked: %s", node.Addr, messageOf(err))
	case resp.GetForeign():
		return nil, identity.ErrForeign
	case resp.GetRefused() != "":
		return nil, fmt.Errorf("the node at %s refuses: %s", node.Addr, resp.GetRefused())
	}
	return resp.GetCertificate(), nil
}

// Renew implements the peer protocol.
func (s server) Renew(ctx context.Context, req *bursarv1.RenewRequest) (*bursarv1.RenewResponse, error) {
	old, err := x509.ParseCertificate(req.GetCertificate())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if s.p.renews == nil {
		return &bursarv1.RenewResponse{Foreign: true}, nil
	}
	next, err := s.p.renews(callerName(ctx), old)
	switch {
	case errors.Is(err, identity.ErrForeign):
		return &bursarv1.RenewResponse{Foreign: true}, nil
	case err != nil:
		return &bursarv1.RenewResponse{Refused: err.Error()}, nil //nolint:nilerr // the answer says it
	}
	return &bursarv1.RenewResponse{Certificate: next.Raw}, nil
}
