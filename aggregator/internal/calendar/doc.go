// Package calendar turns words for times into instants, in any time zone.
//
// A [Window] is a span of time, from its beginning up to its end, which is not in
// it. It is said by a word: 2026, 2026-Q3, 2026-03, 2026-W05, 2026-03-01, today,
// this-month, last-month, 14d, or by two points ([Point]). A period as a point is
// its start, also as an end: from=2026-03-01 and to=2026-03-03 are two days.
//
// [Edges] cuts a window into hours, days, weeks (ISO 8601), months, quarters or
// years as the clocks of the zone show them. A day begins at the first instant at
// which its clock shows that day or a later one. So days have 23, 24 or 25 hours,
// or whatever the zone did; a day that the zone left out has none; and a clock that
// goes back over midnight makes no second day. An hour ends when the clock shows
// the next full hour, and when it is changed, so that none is longer than an hour.
//
// [Now] is the time of this node's clock.
package calendar
