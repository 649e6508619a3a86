// Package source is the source plugin for Kubernetes: it lists pods, watches them from
// there, and sends what their statuses tell as runs.
//
// A watch that goes on where the last one ended has everything, and the checkpoint moves
// with it. Where the API server no longer has what happened since, a listing takes its
// place and a gap says so. DESIGN.md has the reasons.
package source
