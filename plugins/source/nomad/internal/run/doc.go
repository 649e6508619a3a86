// Package run turns allocations into runs: one for each start of each task.
//
// Nomad keeps the last ten events of a task, and moves its start with every
// restart. So an [Entry] remembers what an allocation's tasks were seen to do, and
// each look adds to it. What was missed in between is told as a [journal.Hole], never
// guessed: the run that went on when it was last seen ends then, marked as
// estimated, and starts that no one saw are no runs.
package run
