package access

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// InsteadOfRetry returns a function that says what to do with a quarantined job that no agent
// can map again; it says nothing where one can. The error is as that of Agents.
func (v *View) InsteadOfRetry() (func(*store.Quarantined) string, error) {
	cursors, err := v.Agents()
	imports := map[string]bool{}
	for i := range cursors {
		imports[cursors[i].Agent] = store.IsImport(cursors[i].Epoch)
	}
	return func(q *store.Quarantined) string {
		switch {
		case imports[q.Source.Agent]:
			return "import the file again under a mended mapping, which settles it"
		case q.Source.Type == "": // pushed
			return "push it again, corrected, then drop this"
		case q.Reason == "input" || q.Truncated || q.IsRecord():
			return fmt.Sprintf("correct it where the source reads it, then, on %s: bursar-agent recollect -source %s/%s -from DAY", q.Source.Agent, q.Source.Type, q.Source.Label)
		}
		return ""
	}, err
}
