// Package source is the source plugin for Nomad: it follows the event stream, looks
// at the listings now and then, and sends what both tell as runs of tasks.
//
// The listing is the truth and the stream makes it quick: the checkpoint moves only
// with a listing, and whatever the stream has missed is found by the next one. What
// the stream alone has seen, because it was purged at once, is in the journal before
// it is sent. DESIGN.md has the reasons.
package source
