// Package identity is who a peer is: the role and the name in its certificate,
// the TLS configurations by which peers accept only each other, and the making
// of certificates for `bursar tls`.
//
// A certificate of bursar carries its role and its name as a URI among its
// subject alternative names:
//
//	bursar://aggregator/agg1
//	bursar://agent/nemo-head1
//	bursar://client/alice?roles=read,write
//
// A client has none, one or several roles, see [Rights]. A certificate of another
// CA without such a URI is that of a client named by its common name, and has no
// roles of its own: the aggregator's configuration may give it some.
package identity
