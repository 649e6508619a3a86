// Package event is what an epilog says of a run that ended, and how it is written:
// a line of JSON with a format version, bounded in length. The program bursar-epilog
// sends such lines to the plugin, which answers each with a line, and keeps them in
// its spool; the plugin keeps them in its journal.
package event
