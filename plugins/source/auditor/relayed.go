package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// relays are the origins of records that a bursar itself has by a source auditor.
type relays struct {
	mu      sync.Mutex // of a collection and a count at the same time
	origins map[string]bool
}

// imports is the agent of which bursar says what bursar import brought.
const imports = "import"

// noteRelayed reports whether a record of a bursar is relayed, and remembers its origin. What was
// imported once began there for all that is known.
func (r *relays) noteRelayed(raw []byte) bool {
	if !bytes.Contains(raw, []byte("/auditor/")) {
		return false
	}
	var of struct{ Origin string }
	if json.Unmarshal(raw, &of) != nil { // is refused as what it is
		return false
	}
	agent, rest, _ := strings.Cut(of.Origin, "/")
	if typ, _, _ := strings.Cut(rest, "/"); typ != "auditor" || agent == imports {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.origins == nil {
		r.origins = map[string]bool{}
	}
	r.origins[of.Origin] = true
	return true
}

// drainRefused returns the noted origins, each as what is refused, and forgets them.
func (r *relays) drainRefused() (out []sdk.Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, origin := range slices.Sorted(maps.Keys(r.origins)) {
		out = append(out, sdk.Refused{
			Run: "origin " + origin,
			Message: fmt.Sprintf("records of origin %q are left out: the server has them by its own source auditor, and they may be this cluster's own; "+
				"pull them from where they were collected, or set relayed = true where no clusters pull from each other in a loop", origin),
		})
	}
	r.origins = nil
	return out
}
