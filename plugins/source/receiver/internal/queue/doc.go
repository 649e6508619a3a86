// Package queue hands what clients push to the agent, in groups: while one group is
// being written, the next one gathers. Whoever pushed is answered when the agent has
// the group on its disk.
package queue
