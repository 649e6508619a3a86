package cli

import (
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// clock writes the times of an answer by the clock of a zone, and knows whether it wrote one.
type clock struct {
	zone *time.Location
	used bool
}

// clockFor returns the clock of a format: the site's for people, and UTC for programs.
func clockFor(f format, site *time.Location) *clock {
	if f != asTable || site == nil {
		site = time.UTC
	}
	return &clock{zone: site}
}

// instantText writes a time cut to seconds; "-" for none.
func (c *clock) instantText(t v1.Time) string {
	if t.IsZero() {
		return "-"
	}
	c.used = true
	return t.In(c.zone).Format(time.DateTime)
}

// timeWithZone writes a time with the name of the zone.
func (c *clock) timeWithZone(t v1.Time) string {
	return t.In(c.zone).Format(time.DateTime) + " " + c.zone.String()
}

// zoneNotes say which zone the times are of, where some are and it is not UTC.
func (c *clock) zoneNotes() []string {
	if !c.used || c.zone.String() == "UTC" {
		return nil
	}
	return []string{"Times are those of " + c.zone.String() + "."}
}
