// Package identity is who a peer is: the role and the name in its certificate,
// the TLS configurations by which peers accept only each other, and the making
// of certificates for `bursar tls`.
//
// A certificate of bursar carries its role and its name as a URI among its
// subject alternative names:
//
//	bursar://aggregator/agg1
//	bursar://agent/nemo-head1
//	bursar://client/alice
//
// A certificate of another CA without such a URI is that of a client named by
// its common name; it opens the REST interface and nothing else.
package identity
