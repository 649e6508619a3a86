package api

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Enrolment is what the server needs to let machines join.
type Enrolment struct {
	// Authority signs their certificates; nil: this node cannot.
	Authority *identity.Authority
	// Trusted are the authorities that this cluster trusts.
	Trusted func() []*x509.Certificate
	// Address is where machines join, as host:port; "": nothing listens with TLS.
	Address func() string
	// Taken says that the configuration or the cluster has a machine of that name already.
	Taken func(role identity.Role, name string) bool
	// Nodes are the nodes of the cluster.
	Nodes func() []v1.JoinNode
	// Aggregators are the TLS addresses of the nodes, first this one's.
	Aggregators func() []string
	// Cluster is the cluster's id.
	Cluster func() string
	// Retention says how long the cluster's records keep names; nil: for ever.
	Retention func() erasure.Policy
}

// joinPath is where machines join.
const joinPath = "/v1/join"

func (s *Server) joinRoutes() []route {
	return []route{
		{http.MethodGet, joinPath, s.v1JoinOffer},
		{http.MethodPost, joinPath, s.v1Join},
		{http.MethodGet, "/v1/tokens", s.withView(withoutQuery(s.v1Tokens))},
		{http.MethodPost, "/v1/tokens", s.withView(s.v1TokenCreate)},
		{http.MethodDelete, "/v1/tokens/{id}", s.withView(s.v1TokenRevoke)},
		{http.MethodDelete, "/v1/agents/{name}", s.withView(s.v1AgentRemove)},
	}
}

// activeEnrolment returns what lets machines join, or why none can join here.
func (s *Server) activeEnrolment() (*Enrolment, error) {
	e := s.opt.Enrolment
	switch {
	case e == nil || e.Authority == nil:
		return nil, newRefusal(http.StatusConflict, "this node does not have the cluster's authority: ask a node whose configuration has aggregator.authority, or make certificates with bursar tls")
	case e.Address() == "":
		return nil, newRefusal(http.StatusConflict, "no machine can join here: api.tls_listen of this node's configuration is empty")
	}
	return e, nil
}

// v1JoinOffer is GET /v1/join.
func (s *Server) v1JoinOffer(w http.ResponseWriter, r *http.Request) {
	e, err := s.activeEnrolment()
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	list := append([]*x509.Certificate{e.Authority.Certificate()}, e.Trusted()...)
	answerJSON(w, http.StatusOK, v1.JoinOffer{Authorities: string(identity.EncodeCertificates(list...))})
}

// v1Join is POST /v1/join.
func (s *Server) v1Join(w http.ResponseWriter, r *http.Request) {
	err := s.withLease(w, r, func(r *http.Request) error {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		if r.TLS == nil {
			return newRefusal(http.StatusBadRequest, "machines join over TLS only: use the address of api.tls_listen")
		}
		if s.failures.tooMany(from, time.Now()) {
			w.Header().Set("Retry-After", "60")
			return newRefusal(http.StatusTooManyRequests, "too many wrong tokens came from %s: wait a minute", from)
		}
		joined, err := s.joinMachine(w, r, from)
		if err == nil {
			answerJSON(w, http.StatusOK, joined)
		}
		return err
	})
	if err != nil {
		s.answerError(w, r, err)
	}
}

func (s *Server) joinMachine(w http.ResponseWriter, r *http.Request, from string) (*v1.Joined, error) {
	e, err := s.activeEnrolment()
	if err != nil {
		return nil, err
	}
	var body v1.JoinRequest
	if err := decodeBody(w, r, &body); err != nil {
		return nil, err
	}
	token, err := join.Parse(body.Token)
	if err != nil {
		s.failures.countFailure(from, time.Now())
		return nil, newRefusal(http.StatusUnauthorized, "%v", err)
	}
	csr, err := identity.ParseRequest([]byte(body.Request))
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "the certificate signing request is not valid: %v", err)
	}
	role := identity.Role(body.Role)
	a := &enrol.Arrival{
		Token: token, Role: role, Name: body.Name, Address: body.Address, From: from, Key: identity.KeyDigest(csr), Taken: e.Taken(role, body.Name),
	}
	if err := s.redeemToken(r, a); err != nil {
		if errors.Is(err, enrol.ErrUnknown) {
			s.failures.countFailure(from, time.Now())
		}
		s.opt.Log.Warn("a machine could not join", "token", token.Name(), "role", truncateForLog(body.Role), "name", truncateForLog(body.Name), "from", from, "reason", truncateForLog(err.Error()))
		return nil, s.enrolRefusal(err)
	}
	s.opt.Log.Info("audit", "who", string(role)+"/"+body.Name, "from", r.RemoteAddr, "route", "POST "+joinPath, "token", token.Name(), "result", "joined", "address", truncateForLog(body.Address))
	s.commitAudit(r, audit.Entry{
		Kind: audit.Login, Who: string(role) + "/" + body.Name, From: r.RemoteAddr, Route: "POST " + joinPath, About: truncateForLog(body.Address), Result: "joined by the token " + token.Name(),
	})
	return e.joinedAnswer(csr, &body)
}

// redeemToken uses the token up for the machine that arrives.
func (s *Server) redeemToken(r *http.Request, a *enrol.Arrival) error {
	view, err := s.opt.Reader.Read(r.Context(), access.Daemon())
	if err != nil {
		return err
	}
	defer s.closeView(view)
	return enrol.Admit(r.Context(), view, s.commitResult, a, calendar.Now())
}

// joinedAnswer is what a machine gets whose token was taken. Names of hosts are for nodes only:
// a certificate of an agent must not serve as one of a node's address.
func (e *Enrolment) joinedAnswer(csr *x509.CertificateRequest, body *v1.JoinRequest) (*v1.Joined, error) {
	req := identity.Request{Identity: identity.Identity{Role: identity.Role(body.Role), Name: body.Name}}
	out := &v1.Joined{Name: body.Name, Cluster: e.Cluster(), Authorities: string(identity.EncodeCertificates(e.Trusted()...))}
	if req.Identity.Role == identity.Aggregator {
		key, err := e.Authority.Secret()
		if err != nil {
			return nil, err
		}
		req.Hosts, out.Nodes, out.Retention = body.Hosts, e.Nodes(), e.retentionJSON()
		out.Authority, out.AuthorityKey = string(identity.EncodeCertificates(e.Authority.Certificate())), string(key)
	}
	if req.Identity.Role == identity.Agent && body.Address == "" {
		out.Aggregators = e.Aggregators()
	}
	certificate, err := e.Authority.Sign(csr, req, time.Now())
	out.Certificate = string(certificate)
	return out, err
}

// retentionJSON is the block of the cluster's configuration.
func (e *Enrolment) retentionJSON() *v1.JoinRetention {
	if e.Retention == nil || e.Retention().Months == 0 {
		return nil
	}
	p := e.Retention()
	return &v1.JoinRetention{NamesMonths: p.Months, Drop: textList(p.Drop), AuditMonths: p.KeptAudit()}
}

// enrolRefusal gives an error of package enrol its status.
func (s *Server) enrolRefusal(err error) error {
	for status, reasons := range map[int][]error{
		http.StatusUnauthorized: {enrol.ErrUnknown, enrol.ErrExpired, enrol.ErrUsed, enrol.ErrSpent, enrol.ErrRevoked},
		http.StatusForbidden:    {enrol.ErrRole},
		http.StatusBadRequest:   {enrol.ErrRequest},
		http.StatusConflict:     {enrol.ErrName, enrol.ErrChanged},
		http.StatusNotFound:     {enrol.ErrNoAgent},
	} {
		for _, reason := range reasons {
			if errors.Is(err, reason) {
				return newRefusal(status, "%v", err)
			}
		}
	}
	return err
}

// maxJoin bounds the body of a request to join.
const maxJoin = 64 << 10

func decodeBody(w http.ResponseWriter, r *http.Request, into any) error {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJoin))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return newRefusal(http.StatusBadRequest, "the body is not as /v1/openapi.yaml says: %v", err)
	}
	return nil
}

// v1Tokens is GET /v1/tokens.
func (s *Server) v1Tokens(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	list, err := enrol.Tokens(view)
	if err != nil {
		return err
	}
	out := v1.Tokens{}
	now := calendar.Now()
	if out.Tokens, err = apiTokens(view, now); err != nil {
		return err
	}
	for i := range list {
		t := &list[i]
		one := v1.Token{
			ID: t.ID, Role: string(t.Role), Name: t.Name, State: t.State(now), CreatedBy: t.By,
			Created: v1.Time{Time: t.Made}, Expires: v1.Time{Time: t.Expires},
		}
		if t.Use != nil {
			one.Used, one.UsedBy, one.UsedFrom = v1.Time{Time: t.Use.At}, t.Use.Name, t.Use.From
		}
		out.Tokens = append(out.Tokens, one)
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// v1TokenCreate is POST /v1/tokens.
func (s *Server) v1TokenCreate(w http.ResponseWriter, r *http.Request, view *access.View) error {
	var body v1.NewToken
	if err := decodeBody(w, r, &body); err != nil {
		return err
	}
	switch identity.Role(body.Role) {
	case identity.Agent, identity.Aggregator:
		return s.joinToken(w, r, view, &body)
	}
	return s.apiToken(w, r, view, &body)
}

// joinToken makes a token by which a machine joins.
func (s *Server) joinToken(w http.ResponseWriter, r *http.Request, view *access.View, body *v1.NewToken) error {
	e, err := s.activeEnrolment()
	if err != nil {
		return err
	}
	if len(body.Rows) > 0 || body.Person != "" {
		return newRefusal(http.StatusBadRequest, "a token by which a machine joins gives no records: rows and person are for other roles")
	}
	life := time.Duration(min(body.LifetimeSeconds, int64(enrol.MaxLife/time.Second)+1)) * time.Second
	now := calendar.Now()
	wanted := enrol.Wanted{Role: identity.Role(body.Role), Name: body.Name, Life: life, By: access.From(r.Context()).Name}
	t, err := enrol.Create(r.Context(), view, s.commitResult, wanted, identity.Fingerprint(e.Authority.Certificate()), now)
	if err != nil {
		return s.enrolRefusal(err)
	}
	answerJSON(w, http.StatusCreated, v1.IssuedToken{ID: t.Name(), Token: t.String(), Address: e.Address(), Expires: v1.Time{Time: now.Add(life).UTC()}})
	return nil
}

// v1TokenRevoke is DELETE /v1/tokens/{id}.
func (s *Server) v1TokenRevoke(w http.ResponseWriter, r *http.Request, view *access.View) error {
	id := r.PathValue("id")
	if err := enrol.Revoke(r.Context(), view, s.commitResult, id, access.From(r.Context()).Name, calendar.Now()); err != nil {
		if errors.Is(err, enrol.ErrUnknown) {
			return newRefusal(http.StatusNotFound, "%v: %s; bursar token list has those that there are", err, enrol.Hide(id))
		}
		return s.enrolRefusal(err)
	}
	answerJSON(w, http.StatusOK, v1.Message{Message: "revoked: " + id})
	return nil
}

// v1AgentRemove is DELETE /v1/agents/{name}.
func (s *Server) v1AgentRemove(w http.ResponseWriter, r *http.Request, view *access.View) error {
	name := r.PathValue("name")
	if err := enrol.Remove(r.Context(), view, s.commitResult, name, access.From(r.Context()).Name, calendar.Now()); err != nil {
		return s.enrolRefusal(err)
	}
	answerJSON(w, http.StatusOK, v1.Message{Message: "removed: " + name})
	return nil
}

// failures counts wrong join tokens in a minute by the address that they came from. Of IPv6 it
// is a network of 64 bits, of which a machine has all addresses.
type failures struct {
	mu    sync.Mutex
	since time.Time
	count map[string]int
}

const (
	mostFailures  = 10
	mostAddresses = 10_000
)

// networkOf is what is counted of an address.
func networkOf(from string) string {
	a, err := netip.ParseAddr(from)
	if err != nil || a.Unmap().Is4() {
		return a.Unmap().String()
	}
	network, _ := a.WithZone("").Prefix(64) // it is IPv6
	return network.String()
}

// countFailure counts a wrong token.
func (f *failures) countFailure(from string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) > time.Minute || len(f.count) >= mostAddresses {
		f.since, f.count = now, map[string]int{}
	}
	f.count[networkOf(from)]++
}

// tooMany reports whether too many wrong tokens came from an address.
func (f *failures) tooMany(from string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Sub(f.since) <= time.Minute && f.count[networkOf(from)] >= mostFailures
}
