// Package journal keeps what is known of allocations in a file of the source's own
// folder, so that a plugin that is killed between seeing something and handing it on
// still has it, when Nomad has perhaps forgotten it.
//
// An entry is written before the daemon gets its runs, and written again, with a
// note, once the daemon has them.
package journal
