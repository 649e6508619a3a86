package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/gauges"
)

// localFormat is the version of what [Local.Encode] writes.
const localFormat = 1

// maxLocal bounds what another node may say of itself.
const maxLocal = 1 << 20

// ErrLocal is wrapped by the errors of [DecodeLocal].
var ErrLocal = errors.New("what a node says of itself cannot be read")

type sentLocal struct {
	Format int `json:"format"`
	Local
}

// Encode writes what the node knows of itself, for the others.
func (l Local) Encode() []byte {
	body, err := json.Marshal(sentLocal{localFormat, l})
	if err != nil {
		return nil // a time outside of the years 0 to 9999; it says nothing then
	}
	return body
}

// Bounds of what a node tells the others of its agents.
const (
	briefAgents = 100
	briefError  = 120
	// briefFindings is how many findings about records of an agent are told.
	briefFindings = 4
	// briefDiffers is how many differing blocks are told.
	briefDiffers = 20
	// briefMisplaced is how many nodes with another address are told.
	briefMisplaced = 10
)

// Brief returns l without what is too much to be told every few seconds: of many
// agents those that answer are left out first.
func (l Local) Brief() Local {
	agents := slices.Clone(l.Agents)
	if len(agents) > briefAgents {
		slices.SortStableFunc(agents, func(a, b Agent) int { return int(gauges.OneIf(a.Connected) - gauges.OneIf(b.Connected)) })
		agents = agents[:briefAgents]
	}
	for i := range agents {
		agents[i].Error, agents[i].Unrenewed = cutError(agents[i].Error), cutError(agents[i].Unrenewed)
		agents[i].Failing = cutErrors(agents[i].Failing)
		agents[i].Findings = agents[i].Findings[:min(len(agents[i].Findings), briefFindings)]
	}
	l.Agents, l.ConfigDiffers = agents, l.ConfigDiffers[:min(len(l.ConfigDiffers), briefDiffers)]
	l.Misplaced = l.Misplaced[:min(len(l.Misplaced), briefMisplaced)]
	return l
}

// DecodeLocal reads what another node has written. Fields that this version does
// not know are left out: a newer node may have more to say.
func DecodeLocal(body []byte) (Local, error) {
	if len(body) > maxLocal {
		return Local{}, fmt.Errorf("%w: %d bytes", ErrLocal, len(body))
	}
	var s sentLocal
	if err := json.Unmarshal(body, &s); err != nil {
		return Local{}, fmt.Errorf("%w: %w", ErrLocal, err)
	}
	if s.Format != localFormat {
		return Local{}, fmt.Errorf("%w: format %d", ErrLocal, s.Format)
	}
	return s.Local, nil
}

// cutError cuts an error.
func cutError(why string) string {
	if len(why) > briefError {
		return strings.ToValidUTF8(why[:briefError], "") + "…"
	}
	return why
}

// cutErrors cuts the errors of failing sources, and leaves out those of too many.
func cutErrors(failing map[string]string) map[string]string {
	if failing == nil {
		return nil
	}
	out := map[string]string{}
	for _, source := range slices.Sorted(maps.Keys(failing)) {
		if len(out) < briefFailing {
			out[source] = cutError(failing[source])
		}
	}
	return out
}

// briefFailing is how many failing sources of an agent are told.
const briefFailing = 4
