//go:build e2e

// Package packages installs bursar's packages on fresh machines, by rpm, dnf and
// dpkg, and looks whether they keep what they promise.
//
// A machine is a set of namespaces with a real systemd as its first process, over a
// root that e2e/setup.sh has made: what is written goes to a layer that is thrown
// away with the machine. Nothing of it outlives the test.
package packages
