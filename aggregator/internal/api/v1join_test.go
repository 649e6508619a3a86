package api

import (
	"fmt"
	"testing"
	"time"
)

func TestFailures_OfOneIPv6Network_CountTogether(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		from, same, other string
	}{
		{"2001:db8:1:2::%d", "2001:db8:1:2:ffff::", "2001:db8:1:3::1"},
		{"fe80::%d%%eth0", "fe80::ff%eth1", "fe80:0:0:1::1"},
		{"::ffff:192.0.2.7", "192.0.2.7", "::ffff:192.0.2.8"},
		{"192.0.2.7", "192.0.2.7", "192.0.2.8"},
		{"", "", "192.0.2.8"},
	} {
		var f failures
		for i := range mostFailures {
			if f.tooMany(c.same, now) {
				t.Errorf("%s: %d are too many", c.same, i)
			}
			from := c.from
			if len(from) > 0 && from[0] != ':' && from[0] != '1' {
				from = fmt.Sprintf(from, i+1)
			}
			f.countFailure(from, now)
		}
		if !f.tooMany(c.same, now) || f.tooMany(c.other, now) || f.tooMany(c.same, now.Add(time.Minute+1)) {
			t.Errorf("%+v: %v", c, f.count)
		}
	}
}
