// Package seen remembers which record ids were taken, so that a second push of one
// can be refused.
//
// What it knows is bound to the agent's buffer by the source's checkpoint: every
// batch of ids has a number, and the checkpoint that is in the buffer with the
// records names the greatest one. What the file holds beyond it never came to be, and
// is forgotten by [IDs.Resume]. So an id is known when, and only when, its record is
// in the buffer or with a cluster; after a loss of either, a client that pushes again
// is heard, and identity absorbs what was there after all.
package seen
