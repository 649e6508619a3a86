package api

import (
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/record"
)

type jsonGap struct {
	Agent      string  `json:"agent"`
	SourceType string  `json:"source_type"`
	Label      string  `json:"source_label"`
	From       *string `json:"from"`
	To         *string `json:"to"`
	Reason     string  `json:"reason"`
	Noticed    *string `json:"noticed"`
}

// v1Gaps is GET /v1/gaps: what agents and sources could not hand over.
func (s *Server) v1Gaps(w http.ResponseWriter, r *http.Request, view *access.View) error {
	agent, err := gapsOf(r.URL.RawQuery)
	if err != nil {
		return err
	}
	gaps, err := view.Gaps()
	if err != nil {
		return err
	}
	list, more := []jsonGap{}, false
	for i := range gaps {
		g := &gaps[i]
		if agent != "" && agent != g.Source.Agent {
			continue
		}
		if more = len(list) == maxPage; more {
			break
		}
		list = append(list, jsonGap{g.Source.Agent, g.Source.Type, g.Source.Label, stamp(g.From), stamp(g.To), g.Reason, stamp(g.Noticed)})
	}
	answer(w, http.StatusOK, map[string]any{"gaps": list, "more": more})
	return nil
}

// gapsOf reads whose gaps are asked for; "" is everybody's.
func gapsOf(rawQuery string) (agent string, err error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", refuse(http.StatusBadRequest, "%v", err)
	}
	for name, list := range values {
		switch {
		case name != "agent":
			return "", refuse(http.StatusBadRequest, "unknown field %s, expected agent", name)
		case len(list) > 1:
			return "", refuse(http.StatusBadRequest, "%s is there twice", name)
		}
	}
	return values.Get("agent"), nil
}

// lacks counts a gap of a source of the agent, or of all of it.
func (a *jsonAgent) lacks(source record.Origin) {
	a.Gaps++
	for i := range a.Sources {
		if s := &a.Sources[i]; s.Type == source.Type && s.Label == source.Label {
			s.Gaps++
		}
	}
}
