// Package httpapi is the HTTP side of the receiver: those routes of AUDITOR's interface
// that write, and its health check.
//
// What is answered is final, as package auditor says. A push that cannot be kept now
// waits, and then its connection is broken off; one that is not understood is kept in
// quarantine before it is refused, since the client deletes its copy.
package httpapi
