// Package fields makes the fields of APEL from records, by HCL expressions over
// record:
//
//	record.id, .site, .start_time, .stop_time, .submit_time, .state   texts; times are RFC 3339
//	record.runtime                                                    whole seconds
//	record.meta.KEY                                                   a list of texts
//	record.components.NAME.amount, .components.NAME.scores.SCORE      numbers
//
// site is the name of the site that is reported. Expressions are checked when the
// configuration is loaded. A mandatory field whose expression fails for a record, as
// when the record lacks a key, or gives null or an empty text, is missing; an
// optional one is left out. Numbers are rounded half to even.
//
// An expression that only names a part of the record is evaluated without HCL, and
// the results of others over meta and components are remembered, since most of a
// month's records say the same.
package fields
