//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// AUDITOR itself, with a million records, is imported through its REST API by imports that are
// killed ten times on the way. Its sums are then those of bursar, a second import changes
// nothing, and 30 planted differences are found with their causes. The same through its table is
// in TestImportMillion_OfAuditorsTable.
func TestRealAuditor_ImportedThroughKills_IsEqualToTheUnit(t *testing.T) {
	dsn := rig.Postgres(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	n := *auditorRecords
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(auditorTable, n), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	url := rig.AuditorServer(t, conn.Config().Host)
	// It writes records, too: what it makes of one is read back like the others.
	must(t, "POST", url+"/record", `{"record_id":"written","meta":{"site_id":["site1"]},"components":[{"name":"Cores","amount":3,"scores":[{"name":"HEPscore23","value":10.5}]}],"start_time":"2025-03-04T05:06:07.123456Z","stop_time":"2025-03-04T06:06:07.654321Z"}`, 200, "")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := site.New(t)
	to := killedImport(t, s, url, 10, int64(n-n/1000+1))
	again := importAuditor(t, s, to, url)
	if !again.Compared.Equal || again.Committed.Added != 0 {
		t.Errorf("the second import: %+v", again)
	}
	t.Logf("%d records in %.1f s, %.0f/s", n, again.Seconds, float64(n)/again.Seconds)
	checkConserved(t, to)
	checkComparison(t, s, to, conn, n+1, url)
}
