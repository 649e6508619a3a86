// Package record is the domain of bursar: what one run of a job used, who said
// so, and how statements about the same run are merged.
//
// A [Record] describes a run. A [Write] is one statement about a run by one
// [Origin] with a [Version]. An [Entry] is everything that is held under one
// record id; [Entry.Merge] takes a write into it. Merging is commutative,
// associative and idempotent: whatever the order, the grouping and the number
// of repetitions in which writes arrive, the entry and the record that it
// shows are the same. [Entry.Post] and [Entry.PutStop] are the two operations
// of AUDITOR's interface, which look at the entry first and then merge.
//
// The package imports the standard library and a grapheme counter only. The
// encodings are in package wire.
package record
