// Package payload makes the documents that the actions exec and webhook hand over
// to others: rows of usage, or the records that have changed since the last time. It
// reads which ones from the attributes input, batch and skip_empty and the block
// usage of the action's config block.
//
// A document is one JSON object:
//
//	{"format":1,"now":…,"since":…,"arguments":{…},"usage":[…]}
//	{"format":1,"now":…,"since":…,"arguments":{…},"changes":[…]}
//
// What it says is absolute – sums of a window, a record with the number of its
// change – so that who gets it twice, or gets an older one late, can tell.
package payload
