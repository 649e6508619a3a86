// Package login lets people log in at the pages: at a provider of OpenID Connect, or with
// a token of the API of this cluster. Either way the browser gets the cookie of a session
// that the cluster keeps (package enrol), so that every node knows it.
package login
