package ingest

import (
	"errors"
	"fmt"
	"regexp"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/proto/frame"
)

// damagedError says that the agent holds frames that cannot be read. Trying again
// does not help.
type damagedError struct {
	error

	file string // the buffer's, on the agent; "" when it is not known
}

// Unwrap returns what the agent said.
func (e damagedError) Unwrap() error { return e.error }

// asDamaged makes a [damagedError] of the answer of an agent that says so.
func asDamaged(err error, trailer metadata.MD) error {
	if status.Code(err) != codes.DataLoss {
		return err
	}
	d := damagedError{error: err}
	if files := trailer.Get(frame.DamagedTrailer); len(files) == 1 {
		d.file = files[0]
	}
	return d
}

// plainPath is a path that may stand in a command as it is. An agent is not asked
// for commands: people would run them.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9._/-]{1,200}$`)

// remedyCommand is the command that mends what is wrong with an agent; "" where trying
// again may do.
func remedyCommand(agent string, err error) string {
	d, ok := errors.AsType[damagedError](err)
	switch {
	case ok && plainPath.MatchString(d.file):
		return fmt.Sprintf("systemctl stop bursar-agent && mv %s %s.damaged && systemctl start bursar-agent   # on %s", d.file, d.file, agent)
	case ok, errors.Is(err, frame.ErrCorrupt), errors.Is(err, frame.ErrChain):
		return "bursar-agent status   # on " + agent
	}
	return ""
}
