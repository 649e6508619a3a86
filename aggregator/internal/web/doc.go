// Package web serves the pages of the aggregator: a few tables that are made on
// the server, one style sheet, and one script that refreshes a page. Nothing comes
// from elsewhere, and everything that a record says is escaped.
//
// The pages stand at / and below /ui/, where AUDITOR has no routes.
package web
