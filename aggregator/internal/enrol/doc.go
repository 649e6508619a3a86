// Package enrol keeps what lets machines, programs and people in: the tokens by which
// machines join a cluster, and the machines that have joined, tokens of the API, and sessions
// of browsers. All are documents of the replicated state. DESIGN.md says why it is so.
package enrol
