// Package message writes the messages of APEL that a site sends: normalised
// summaries v0.4, sync v0.1, and individual jobs v0.3 and v0.4.
//
// A message is a header line and records; a record is lines "Key: value" in a
// fixed order, closed by a line "%%". The receiver reads ASCII, refuses a whole
// message for one field that it does not know or one value that is out of range,
// and replaces rows by their key. So everything that it checks is checked here
// first, record by record: one odd record must not take the others with it.
package message
