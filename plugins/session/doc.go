// Package session is what a daemon knows of a source plugin that runs: what the
// plugin says of itself, the mapping that is compiled against that, and how jobs
// that fail and odd output become frames.
//
// The agent collects through sessions, and `bursar import` reads old files
// through one.
package session
