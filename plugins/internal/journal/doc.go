// Package journal keeps what a source knows of runs in a file of the source's own
// folder, so that a plugin that is killed between seeing something and handing it on
// still has it, when the scheduler has perhaps forgotten it.
//
// An entry is written before the daemon gets its runs, and written again, with a
// note, once the daemon has them. A [Tracker] does so for a source that follows its scheduler.
package journal
