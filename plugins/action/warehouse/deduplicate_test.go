package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A server that is too old for a setting refuses it.
func TestEnsureDeduplication_ByRelease_IsAskedForOnce(t *testing.T) {
	for version, want := range map[string]bool{"18.16.1": false, "21.8.1.1": false, "22.1.3.7": false, "22.2.2.1": true, "26.9.2.1": true} {
		full := map[string]string{"ledger": "MergeTree PARTITION BY (cluster, month)", "daily": "SummingMergeTree SETTINGS non_replicated_deduplication_window = 10000", "monthly": "SummingMergeTree PARTITION BY (cluster, year)"}
		altered, tokens, on := "", "", ""
		s := sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			statement := string(body)
			switch {
			case strings.HasPrefix(statement, "SELECT version()"):
				fmt.Fprintf(w, "v\n%s\n", version)
			case strings.HasPrefix(statement, "SELECT"):
				name := strings.TrimSuffix(statement, " FORMAT TabSeparatedWithNames")
				fmt.Fprintf(w, "e\n%s\n", full[strings.Trim(name[strings.LastIndex(name, " "):], " '")])
			case strings.HasPrefix(statement, "ALTER"):
				altered += statement + ";"
			}
			tokens += r.URL.Query().Get("insert_deduplication_token")
			on = r.URL.Query().Get("insert_deduplicate") // of the last one
		}))
		if err := s.checkVersion(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.ensureDeduplication(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.insertRows(t.Context(), "t", "bursar-C-7", nil, nil); err != nil {
			t.Fatal(err)
		}
		wantAltered, wantTokens, wantOn := "", "", ""
		if want {
			wantAltered, wantTokens, wantOn = "ALTER TABLE `bursar`.`ledger` MODIFY SETTING non_replicated_deduplication_window = 10000;ALTER TABLE `bursar`.`monthly` MODIFY SETTING non_replicated_deduplication_window = 10000;", "bursar-C-7", "1"
		}
		if altered != wantAltered || tokens != wantTokens || on != wantOn {
			t.Errorf("%s: %q and the token %q, insert_deduplicate %q", version, altered, tokens, on)
		}
	}
}
