// Package source is the source plugin for what is pushed to AUDITOR: it listens, and
// hands on to the agent.
package source
