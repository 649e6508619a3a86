package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Hole is a time of which something is missing. An entry keeps its holes until the daemon
// has them.
type Hole struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Starts int64     `json:"starts,omitempty"` // that were missed; 0: what ran disappeared
}

// Holes adds up the holes of entries.
type Holes struct {
	from, to     time.Time
	starts, gone int64
	examples     []string
}

// Add adds the holes of an entry with this name.
func (h *Holes) Add(name string, holes []Hole) {
	for _, hole := range holes {
		if hole.Starts == 0 {
			h.gone++
		}
		h.starts += hole.Starts
		if h.from.IsZero() || hole.From.Before(h.from) {
			h.from = hole.From
		}
		if hole.To.After(h.to) {
			h.to = hole.To
		}
		if len(h.examples) < 3 && !slices.Contains(h.examples, name) {
			h.examples = append(h.examples, name)
		}
	}
}

// Gap is one gap for all holes; false when there are none. Starts and gone say what so many
// of them are, such as "starts were not seen".
func (h *Holes) Gap(starts, gone string) (sdk.Gap, bool) {
	if h.from.IsZero() {
		return sdk.Gap{}, false
	}
	var reasons []string
	if h.starts > 0 {
		reasons = append(reasons, fmt.Sprintf("%d %s", h.starts, starts))
	}
	if h.gone > 0 {
		reasons = append(reasons, fmt.Sprintf("%d %s", h.gone, gone))
	}
	return sdk.Gap{From: h.from, To: h.to, Reason: fmt.Sprintf("%s (%v)", strings.Join(reasons, "; "), h.examples)}, true
}
