package membership

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAClockIsWrongWhenAMajorityIsFarOnOneSide(t *testing.T) {
	const s = time.Second
	at := func(offset time.Duration) Member { return Member{Voter: true, Offset: offset, Heard: noon} }
	for name, c := range map[string]struct {
		peers  []Member
		offset time.Duration
		wrong  string
	}{
		"alone":                         {nil, 0, ""},
		"all equal":                     {[]Member{at(0), at(0)}, 0, ""},
		"within tolerance":              {[]Member{at(4 * s), at(5 * s)}, -4 * s, ""},
		"both are ahead":                {[]Member{at(3600 * s), at(3601 * s)}, -3600 * s, "1h0m0s behind those of 2 of 3"},
		"both are behind":               {[]Member{at(-6 * s), at(-7 * s)}, 6 * s, "6s ahead of those of 2 of 3"},
		"one is far":                    {[]Member{at(0), at(3600 * s)}, 0, ""},
		"one on each side":              {[]Member{at(-60 * s), at(60 * s)}, 0, ""},
		"one is far, one is mute":       {[]Member{at(60 * s), {Voter: true}}, 0, ""},
		"one is far, one is of old":     {[]Member{at(60 * s), {Voter: true, Offset: 60 * s, Heard: noon.Add(-time.Minute)}}, 0, ""},
		"two nodes cannot tell":         {[]Member{at(60 * s)}, 0, ""},
		"far, but perhaps not":          {[]Member{at(6 * s), {Voter: true, Offset: 6 * s, Doubt: 2 * s, Heard: noon}}, -6 * s, ""},
		"nodes without a vote are mute": {[]Member{at(0), at(0), {Offset: 60 * s, Heard: noon}, {Offset: 60 * s, Heard: noon}, {Offset: 60 * s, Heard: noon}}, 0, ""},
	} {
		offset, err := compareClocks(c.peers, noon, 5*s)
		if offset != c.offset {
			t.Errorf("%s: offset %s, want %s", name, offset, c.offset)
		}
		if (err != nil) != (c.wrong != "") || err != nil && (!errors.Is(err, ErrClock) || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
	}
}

// leadership counts how often the leadership was handed on.
type leadership struct {
	tries atomic.Int32
	err   error
}

func (t *leadership) TransferLeadership(context.Context) error {
	t.tries.Add(1)
	return t.err
}

func TestALeaderWithAWrongClockProposesNothingAndHandsTheLeadershipOn(t *testing.T) {
	o, seat := &others{}, &leadership{err: errors.New("nobody can")}
	c := NewClock(ClockOptions{Peers: o, Leadership: seat, Log: quiet(), Metrics: prometheus.NewRegistry(), Every: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- c.Run(ctx) }()
	go func() { ended <- c.Lead(ctx) }()
	say := func(offset time.Duration) {
		now := time.Now()
		o.say(Member{Voter: true, Offset: offset, Heard: now}, Member{Voter: true, Offset: offset, Heard: now})
	}
	if err := c.Check(); err != nil || seat.tries.Load() > 0 {
		t.Fatal(err)
	}
	await(t, func() bool { say(time.Hour); return errors.Is(c.Check(), ErrClock) })
	await(t, func() bool { say(time.Hour); return seat.tries.Load() > 0 })
	await(t, func() bool { say(0); return c.Check() == nil && c.Offset() == 0 })
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
