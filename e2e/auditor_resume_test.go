//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// An import that is killed goes on where it was, from each of AUDITOR's places, and all counts
// and sums are equal at its end.
func TestImportAuditor_Killed_ContinuesWhereItWas(t *testing.T) {
	const n = 40_000
	dsn := rig.Postgres(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(auditorTable, n), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := site.New(t)
	from := s.Node(site.NodeSpec{Name: "from"})
	from.Start()
	from.AwaitReady()
	database := fmt.Sprintf("postgres:///postgres?host=%s&user=postgres", conn.Config().Host)
	if out, err := from.Bursar("import", "-dev", "-plugin-dir", filepath.Join(s.Bin, "plugins"), "auditor", database); err != nil {
		t.Fatal(out, err)
	}
	for name, address := range map[string]string{"database": database, "archives": auditorArchive(t, conn), "server": from.URL} {
		t.Run(name, func(t *testing.T) { killedImport(t, s, address, killsOfImport, n-n/1000) })
	}
}

// killsOfImport is how often each import is killed; ten times and more from all of AUDITOR's
// places together.
const killsOfImport = 4

// killedImport kills imports into a new cluster, and lets the last one end. It returns the
// cluster.
func killedImport(t *testing.T, s *site.Site, address string, kills int, want int64) (to *site.Aggregator) {
	to = s.Node(site.NodeSpec{Name: "to-" + filepath.Base(t.Name())})
	to.Start()
	to.AwaitReady()
	position := filepath.Join(os.Getenv("XDG_STATE_HOME"), "bursar/import-import-auditor-auditor.position")
	begin := func() (cmd *exec.Cmd, out, said *bytes.Buffer) {
		out, said = &bytes.Buffer{}, &bytes.Buffer{}
		cmd = exec.CommandContext(t.Context(), filepath.Join(s.Bin, "bursar"), "import", "-dev", "-plugin-dir", filepath.Join(s.Bin, "plugins"), "-format", "json", "auditor", address)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "BURSAR_ADDR="+to.Admin()), out, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out, said
	}
	for n := range int64(kills) {
		cmd, _, said := begin()
		site.Eventually(t, "more was committed", func() (bool, string) {
			st, err := to.Status()
			return err == nil && st.Records > want*(n+1)/int64(2*kills), fmt.Sprint(st.Records, err)
		})
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Fatal("the import ended before it was killed:", said)
		}
	}
	cmd, out, said := begin()
	var got compared
	if err := cmd.Wait(); err != nil {
		t.Fatal(err, out, said)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err, out)
	}
	if !strings.Contains(said.String(), "Continuing at "+position) || !got.Compared.Equal || got.Compared.Counted != want {
		t.Errorf("%+v %s", got, said)
	}
	t.Logf("%s", said)
	if size := fileSize(position); size != 0 {
		t.Errorf("the position has %d bytes when all is done", size)
	}
	return to
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// auditorArchive writes the records that ended to a file as AUDITOR archives them.
func auditorArchive(t *testing.T, conn *pgx.Conn) (path string) {
	t.Helper()
	type row struct {
		RecordID   string `parquet:"record_id"`
		Meta       string `parquet:"meta"`
		Components string `parquet:"components"`
		Start      int64  `parquet:"start_time,timestamp(millisecond)"`
		Stop       int64  `parquet:"stop_time,timestamp(millisecond)"`
		Runtime    int64  `parquet:"runtime"`
	}
	found, err := conn.Query(t.Context(), `SELECT record_id, meta::text, components::text, trunc(extract(epoch FROM start_time) * 1000)::bigint,
		trunc(extract(epoch FROM stop_time) * 1000)::bigint, runtime FROM auditor_accounting WHERE stop_time IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "auditor_2026_03.parquet")
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return path
}
