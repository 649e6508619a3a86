// Package join is how a machine joins a cluster by a token: what a token says, and the
// exchange by which it becomes a certificate. A token names the cluster's authority by
// its fingerprint, and the secret in it is sent only on a connection that this authority
// has proved.
package join
