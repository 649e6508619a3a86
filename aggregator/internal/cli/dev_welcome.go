package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// awaitAgent waits until the agent takes connections, for two seconds at most: the
// aggregator would find it later, too.
func (s *site) awaitAgent(ctx context.Context) error {
	keys, err := identity.Load(s.keys)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: keys.Client(identity.Agent, name)}
	dialer.Config.NextProtos = []string{"h2"}
	for {
		conn, err := dialer.DialContext(ctx, "tcp", s.agentListen)
		if err == nil {
			_ = conn.Close() // it was only to see
			return nil
		}
		if pauseBriefly(ctx) != nil {
			return nil
		}
	}
}

// awaitRecords waits until the aggregator serves, and a little for the first records. It
// returns how many there are.
func (s *site) awaitRecords(ctx context.Context) (uint64, error) {
	c, err := client.New(client.Options{Address: "unix:" + s.socket, Timeout: 2 * time.Second})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for c.Health(ctx) != nil {
		if err := pauseBriefly(ctx); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	for deadline := began.Add(shortly); ; {
		now, err := c.Status(ctx, nil)
		if err != nil {
			return 0, err
		}
		late := time.Now().After(deadline)
		switch {
		case now.Records == nil && late:
			return 0, errors.New("the aggregator cannot count its records")
		case now.Records != nil && (late || isComplete(&now, began) || !s.waitsForRecords):
			return *now.Records, nil
		}
		if err := pauseBriefly(ctx); err != nil {
			return 0, err
		}
	}
}

// isComplete reports whether a source has told all that there was about a minute
// before that moment.
func isComplete(s *v1.Status, at time.Time) bool {
	for _, a := range s.Agents {
		for _, source := range a.Sources {
			if source.CompleteTo.After(at.Add(-time.Minute)) {
				return true
			}
		}
	}
	return false
}

func pauseBriefly(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

// commandName is by what the user calls the program.
func (s *site) commandName() string {
	if found, err := exec.LookPath("bursar"); err == nil && found == s.bursar {
		return "bursar"
	}
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, s.bursar); err == nil && !strings.HasPrefix(short, "..") {
			return "./" + short
		}
	}
	return s.bursar
}

// sessionLink is the address that opens the pages in one browser.
func (s *site) sessionLink(ctx context.Context) (string, error) {
	c, err := client.New(client.Options{Address: "unix:" + s.socket, Timeout: 10 * time.Second})
	if err != nil {
		return "", err
	}
	defer c.Close()
	session, err := c.Session(ctx)
	return session.URL, err
}

// printWelcome tells the user what is there and what to try.
func (s *site) printWelcome(ctx context.Context, w io.Writer, records uint64) error {
	link, err := s.sessionLink(ctx)
	if err != nil {
		return err
	}
	call := s.commandName()
	notes := ""
	if s.temporary {
		notes = ", removed at the end"
	}
	if s.demo {
		notes += "\n  Demo      " + filepath.Join(s.dir, "demo") + " has its projects, prices, budgets and more"
	}
	_, err = fmt.Fprintf(w, `
bursar is running.

  Pages     %[1]s
            for one browser; %[5]s login prints another link
  Records   %[2]d so far, from %[3]s
  Files     %[4]s%[6]s

Try, in another terminal of this user:

  %[5]s status
  %[5]s records -since 24h
  %[5]s agents
  curl --unix-socket %[7]s 'http://localhost/v1/records?limit=2'

Post a record as to AUDITOR:

  curl --unix-socket %[7]s http://localhost/record -H 'Content-Type: application/json' \
    -d '{"record_id":"hello-1",
    "meta":{"user_id":["me"]},"components":[{"name":"Cores","amount":4,"scores":[]}],
    "start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z"}'

AUDITOR's clients work unchanged at http://%[8]s/ where the configuration says so:
put access { plain_role = "read,write" } into a file in a folder, and sources and
actions of your own, and start again with %[5]s dev -config FOLDER.

Ctrl-C stops everything.
`, link, records, s.source, s.dir, call, notes, s.socket, s.listen)
	return err
}
