// Package programs runs programs of the aggregator's actions on the agent's machine: those
// that the agent's own configuration allows, and each only for the newest attempt that
// the agent knows of.
//
// A [Runner] asks the [Rules] first. Then the attempt's fence is kept on the disk by
// [Fences], and lesser ones are refused from then on: a leader that was stopped and wakes
// up finds that another one has gone on, and a program that still runs for it is killed.
package programs
