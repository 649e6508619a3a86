//go:build e2e

// Package site is a small bursar site for a test: real daemons in a temporary
// directory, with certificates of their own, on loopback ports that stay the
// same over restarts.
//
// The programs come from bin/ at the top of the repository, where make build
// puts them; BURSAR_BIN names another folder.
package site
