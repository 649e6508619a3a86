//go:build e2e

// Package pages looks at the pages of a real aggregator with a real browser, Debian's
// Chromium, as a person would: in the light and in the dark, on a phone, on paper, without
// script, and with the rights of someone who sees some of the records. What the
// browser logs as an error, every request to another host, what axe-core calls
// serious, and every figure that is not that of /v1 fails a test.
//
// The pages that are walked are a table in pages_test.go; a new page is a line of it. The
// tests of roles_test.go follow the navigation of each role, in an empty cluster, in a
// day-old cluster, in the demo and in one with many records (-records), and log which pages
// took longest. -pictures writes the first page of each role into a folder.
package pages
