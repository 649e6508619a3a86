// Package web serves the pages of the aggregator: tables that are made on the server,
// style sheets, and small scripts that only add to them. Nothing comes from elsewhere,
// and everything that a record says is escaped.
//
// The chart of the usage page is drawn by a script from the page's own tables, so that
// chart, tables and /v1/usage, of which the tables are, cannot disagree. Its library is
// part of the program, see static/echarts.README.md. Pages name their files with a
// version of the content, so that a browser keeps them until they change.
//
// The pages stand at / and below /ui/, where AUDITOR has no routes.
package web
