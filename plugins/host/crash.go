package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrCrash is what errors are that a plugin is to blame for: its process ended by
// itself, or hung. Its text is not part of theirs.
var ErrCrash = errors.New("the plugin crashed or hung")

// Stall says that a plugin hangs: a call made no progress for too long. It is an
// [ErrCrash].
type Stall struct {
	Call   string        // for example Collect
	Silent time.Duration // for how long it made none
}

// Error implements error.
func (s *Stall) Error() string {
	return fmt.Sprintf("the plugin hangs: %s made no progress for %s", s.Call, s.Silent)
}

// Is makes it ErrCrash.
func (s *Stall) Is(target error) bool { return target == ErrCrash }

// crash is an error that is ErrCrash.
type crash struct{ error }

// Is makes it ErrCrash.
func (c crash) Is(target error) bool { return target == ErrCrash }

// Unwrap returns the error.
func (c crash) Unwrap() error { return c.error }

// Blame makes err, which a call of the plugin gave until ctx ended, an [ErrCrash] when
// the process has ended by itself or was late. What was late hangs: see Hang. It is for
// before Close.
func (p *Process) Blame(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if Late(ctx) {
		if _, ok := errors.AsType[*Stall](err); !ok {
			err = crash{fmt.Errorf("the plugin hangs: %w", err)}
		}
		p.Hang(err)
		return err
	}
	broken := status.Code(err) == codes.Unavailable // it is about to have ended
	if broken || p.Err() != nil {
		return crash{err}
	}
	return err
}

// Said returns what a plugin itself answered to a call, without gRPC's words around it; any
// other error as it is.
func Said(err error) error {
	if said, ok := status.FromError(err); ok && said.Code() == codes.Unknown {
		return errors.New(said.Message())
	}
	return err
}

// Late reports whether the deadline of ctx has passed, also where nothing has ended ctx
// yet: a plugin ends a call at the same deadline by a timer of its own, and on a busy
// machine that one may be first.
func Late(ctx context.Context) bool {
	if err := ctx.Err(); err != nil {
		return errors.Is(err, context.DeadlineExceeded)
	}
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}
