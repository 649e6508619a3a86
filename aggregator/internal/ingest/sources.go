package ingest

import (
	"context"
	"time"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// Failing is a source of an agent that does not collect.
type Failing struct {
	Source string // type/label
	Error  string
}

// Reported is what an agent says of one of its sources.
type Reported struct {
	Source string // type/label
	State  string // such as collecting, of which an agent's DESIGN.md has the list
}

// Found is what an agent found about records of one of its sources.
type Found struct {
	Source  string // type/label
	Finding *bursarv1.Finding
}

// maxFound is how many findings of a source are taken.
const maxFound = 32

// Bounds of asking an agent how its sources are doing.
const (
	askEvery = 20 * time.Second
	askTime  = 5 * time.Second
)

// askSources asks the agent now and again how its sources are doing, until ctx ends.
// An agent that cannot be asked is seen by its pulls.
func (l *Loop) askSources(ctx context.Context) {
	repeat.Every(ctx, askEvery, func() bool {
		l.askOnce(ctx)
		return true
	})
}

func (l *Loop) askOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	resp, err := l.Client.Status(ctx, &bursarv1.StatusRequest{})
	if err != nil {
		return
	}
	var reported []Reported
	var failing []Failing
	var found []Found
	for _, s := range resp.GetSources() {
		name := s.GetType() + "/" + s.GetLabel()
		for _, f := range s.GetFindings()[:min(len(s.GetFindings()), maxFound)] {
			found = append(found, Found{Source: name, Finding: f})
		}
		reported = append(reported, Reported{Source: name, State: s.GetState()})
		if s.GetState() == "failed" || s.GetState() == "silent" {
			failing = append(failing, Failing{Source: name, Error: s.GetError()})
		}
	}
	l.changeStatus(func(s *Status) { s.Asked, s.Reported, s.Failing, s.Found = true, reported, failing, found })
}
