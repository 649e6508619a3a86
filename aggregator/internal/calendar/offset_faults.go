//go:build faults

package calendar

import (
	"os"
	"strings"
	"time"
)

// OffsetVariable is how far the node's clock is ahead of the machine's, as a
// duration such as -1h, or @ and the name of a file that holds one: the file is
// read at every look, so that the clock can jump. What cannot be read is 0.
const OffsetVariable = "BURSAR_TEST_CLOCK_OFFSET"

func clockOffset() time.Duration {
	text := os.Getenv(OffsetVariable)
	if name, ok := strings.CutPrefix(text, "@"); ok {
		raw, err := os.ReadFile(name)
		if err != nil {
			return 0
		}
		text = string(raw)
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return d
}
