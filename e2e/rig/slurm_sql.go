//go:build e2e

package rig

import (
	"context"
	"strings"
)

// SQL runs statements in slurmdbd's database and returns the rows, tab-separated,
// one a line, without a heading.
func (c *Cluster) SQL(statements string) string {
	c.t.Helper()
	out, err := c.sqlIn(dbName, statements)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	return out
}

func (c *Cluster) sqlIn(database, statements string) (string, error) {
	cmd := c.command(context.Background(), "root", "mariadb", "--no-defaults", "-S", c.socket(), "-N", "-B", "--default-character-set=utf8mb4", database)
	cmd.Stdin = strings.NewReader(statements)
	return output(cmd)
}
