package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

func TestANodeWhoseStoreCannotGoOnEndsWithACodeAndARemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{fmt.Errorf("%w: 000005.sst", store.ErrCorrupt), systemd.ExitFenced, "move /data away"},
		{fmt.Errorf("write 000004.log: %w", syscall.ENOSPC), exitDisk, "free-ballast"},
		{fmt.Errorf("write 000004.log: %w", syscall.EDQUOT), exitDisk, "free-ballast"},
		{errors.New("sync 000004.log: input/output error"), exitDisk, "input/output error"},
	} {
		var log bytes.Buffer
		code := 0
		a := &Aggregator{set: Settings{DataDir: "/data", Exit: func(c int) { code = c }, Log: slog.New(slog.NewTextHandler(&log, nil))}}
		a.exitOnStoreError(c.err)
		if code != c.code || !strings.Contains(log.String(), c.want) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%v: code %d, %s", c.err, code, &log)
		}
	}
}
