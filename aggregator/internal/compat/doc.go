// Package compat makes the reports of programs that sites used before, with their
// figures and all that is odd about them, so that old and new can be compared line by
// line: those of ClusterAccountant from its own files, those of ai4-accounting and of
// AUDITOR's utilization plugin from what /v1 says.
package compat
