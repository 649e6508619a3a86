package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrForeign says that the archive is of another cluster. Its agents know it by
// its id: two clusters of one id would let agents trim what the other one lacks.
var ErrForeign = errors.New("the snapshot is of another cluster")

// Installer replaces the state of all nodes by an image, in order with all
// commands.
type Installer interface {
	Install(ctx context.Context, dir string) error
}

// Restored says what a cluster was taken back to.
type Restored struct {
	Meta Meta
	Life Incarnation
}

// Restore takes an archive in and has it installed. cluster is the id of the
// cluster that goes back; an archive of another one is refused, unless it is "".
// Once the installation has begun, what is being restored is returned with the
// error too.
func (s *Archiver) Restore(ctx context.Context, r io.Reader, cluster string, into Installer) (*Restored, error) {
	taken, err := s.Take(ctx, r, func(m Meta) error {
		if cluster != "" && m.Cluster != cluster {
			return fmt.Errorf("%w: it says %q, and this is %q", ErrForeign, m.Cluster, cluster)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	done := &Restored{Meta: taken.Meta, Life: taken.Life}
	if err := into.Install(ctx, taken.Dir); err != nil {
		return done, errors.Join(fmt.Errorf("install the snapshot: %w", err), taken.Close())
	}
	return done, taken.Close()
}
