// Package web serves the pages of the aggregator: tables that are made on the
// server and say everything, and scripts that only add to them, such as charts, and
// records that are filtered while one types. Nothing comes from elsewhere, and
// everything that a record says is escaped.
//
// The pages stand at / and below /ui/, where AUDITOR has no routes.
package web
