package main

import (
	"context"
	"fmt"
	"strings"
)

// tokensKept is how many partitions of inserts a table remembers: those of hundreds of batches.
const tokensKept = 10000

// windowSetting is the setting of a table by which it remembers the tokens of inserts.
const windowSetting = "non_replicated_deduplication_window"

// ensureDeduplication has the tables that a batch is added to remember inserts, so that an insert
// which a server received of a killed attempt, and begins after the next attempt has written the
// batch, adds nothing. The token is the query id, which has the number of the position: no two
// batches have the same one, also when all rows are written anew.
func (s *session) ensureDeduplication(ctx context.Context) error {
	if !s.deduplicates {
		return nil
	}
	for _, table := range batchTables() {
		query, err := s.queryOne(ctx, fmt.Sprintf("SELECT engine_full FROM system.tables WHERE database = %s AND name = %s", quoteText(s.Database), quoteText(table.name)))
		if err != nil {
			return err
		}
		if strings.HasPrefix(query, "Replicated") || strings.Contains(query, windowSetting) {
			continue // replicated tables remember by themselves
		}
		if err := s.executeStatement(ctx, fmt.Sprintf("ALTER TABLE %s MODIFY SETTING %s = %d", s.tableName(table.name), windowSetting, tokensKept)); err != nil {
			return err
		}
	}
	return nil
}
