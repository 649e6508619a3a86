package api

import (
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// v1Gaps is GET /v1/gaps: what agents and sources could not hand over.
func (s *Server) v1Gaps(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := decodeQuery[v1.GapsQuery](r)
	if err != nil {
		return err
	}
	gaps, err := view.Gaps()
	if err != nil {
		return err
	}
	out := v1.Gaps{Gaps: []v1.Gap{}}
	for i := range gaps {
		g := &gaps[i]
		if q.Agent != "" && q.Agent != g.Source.Agent {
			continue
		}
		if out.More = len(out.Gaps) == maxPage; out.More {
			break
		}
		out.Gaps = append(out.Gaps, v1.Gap{
			Agent: g.Source.Agent, SourceType: g.Source.Type, SourceLabel: g.Source.Label,
			From: v1.Stamp(g.From), To: v1.Stamp(g.To), Reason: g.Reason, Noticed: v1.Stamp(g.Noticed),
		})
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// countGap counts a gap of a source of the agent, or of all of it.
func countGap(a *v1.Agent, source record.Origin) {
	a.Gaps++
	for i := range a.Sources {
		if s := &a.Sources[i]; s.Type == source.Type && s.Label == source.Label {
			s.Gaps++
		}
	}
}
