// Package control is how a person speaks with the agent that runs on the same
// machine: HTTP over a unix socket in the agent's data folder, which only the
// agent's user may use.
//
//	GET  /v1/status      Status
//	POST /v1/reload      Reloaded, or 422 with Refusal
//	POST /v1/forget      Forgotten, or 422 with Refusal
//	POST /v1/recollect   one Step a line, until one is Done
package control
