// Package local lets programs of one machine reach each other over unix sockets. The
// file system says who may connect, and the kernel who is at the other end. Paths may
// be longer than the kernel takes.
package local
