package host

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrCrash is what errors are that a plugin is to blame for: its process ended by
// itself, or hung. Its text is not part of theirs.
var ErrCrash = errors.New("the plugin crashed or hung")

// crash is an error that is ErrCrash.
type crash struct{ error }

// Is makes it ErrCrash.
func (c crash) Is(target error) bool { return target == ErrCrash }

// Unwrap returns the error.
func (c crash) Unwrap() error { return c.error }

// Blame makes err, which a call of the plugin gave until ctx ended, an [ErrCrash] when
// the process has ended by itself or was late. It is for before Close.
func (p *Process) Blame(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	broken := status.Code(err) == codes.Unavailable // it is about to have ended
	if broken || p.Err() != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return crash{err}
	}
	return err
}
