//go:build e2e

package faults

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// before is earlier than any job.
const before = "2000-01-01T00:00:00Z"

// settledUntil is up to when every job that there is has ended or has not begun:
// until then usage is known without a clock.
func (t Truth) settledUntil() record.Time {
	var last record.Time
	open := record.None
	for _, j := range t {
		switch {
		case j.Stop != record.None:
			last = max(last, j.Stop+1)
		case open == record.None || j.Start < open:
			open = j.Start
		}
	}
	if open != record.None {
		return open
	}
	return last
}

// UsageUntil is the sum over all jobs up to an instant.
func (t Truth) UsageUntil(end record.Time) int64 {
	var sum int64
	for _, j := range t {
		if j.Stop != record.None {
			sum += Job{Start: j.Start, Stop: min(j.Stop, end), Cores: j.Cores}.Usage()
		}
	}
	return sum
}

// Used asks a node what jobs used until an instant, in cores times microseconds. It
// is answered from the node's sums by day, and for the last day from its records.
func (m *Member) Used(end record.Time) (*big.Rat, error) {
	var answer struct {
		Measures []struct {
			Name  string      `json:"name"`
			Total json.Number `json:"total"`
		} `json:"measures"`
	}
	query := url.Values{"from": {before}, "to": {time.UnixMicro(int64(end)).UTC().Format(time.RFC3339Nano)}, "measure": {"Cores"}}
	if err := m.fetchJSON("/v1/usage?"+query.Encode(), &answer); err != nil {
		return nil, err
	}
	if len(answer.Measures) != 1 || answer.Measures[0].Name != "Cores" {
		return nil, fmt.Errorf("%s: the usage of cores has the measures %+v", m.Name, answer.Measures)
	}
	total, ok := new(big.Rat).SetString(string(answer.Measures[0].Total))
	if !ok {
		return nil, fmt.Errorf("%s: the usage is %q", m.Name, answer.Measures[0].Total)
	}
	return total.Mul(total, big.NewRat(1e6, 1)), nil
}

// CompareUsage returns how a node's sums differ from those of the jobs.
func (t Truth) CompareUsage(m *Member) error {
	end := t.settledUntil()
	if len(t) == 0 {
		return nil // no window has anything
	}
	got, err := m.Used(end)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	if want := t.UsageUntil(end); got.Cmp(new(big.Rat).SetInt64(want)) != 0 {
		return fmt.Errorf("%s: cores times microseconds until %s are %s by GET /v1/usage, were %d", m.Name, time.UnixMicro(int64(end)).UTC(), got.FloatString(6), want)
	}
	return nil
}
