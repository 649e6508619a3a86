package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestHoldings_UserThatIsNotShown_IsFoundByPage(t *testing.T) {
	rg := newRig(t, noon("2026-04-02T12:00:00Z"))
	at, err := record.ParseTime("2026-03-02T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	put := func(id, label string, rank record.Rank, user string) record.Write {
		return record.Write{
			Op: record.OpPut, ID: id, Origin: record.Origin{Agent: "head1", Type: "slurm", Label: label}, Rank: rank, Version: record.Version{Ended: true, Observed: int64(at)}, Stop: record.None,
			Record: &record.Record{ID: id, Start: at, Stop: at + record.Hour, Submit: record.None, Meta: record.Meta{{Key: "user_id", Values: []string{user}}}},
		}
	}
	const both = 1001 // a page and one
	writes := []record.Write{put("own", "live", record.RankScheduler, "erika"), put("own", "past", record.RankImport, "erika.old"), put("other", "live", record.RankScheduler, "alice"), put("other", "past", record.RankImport, "bob")}
	for i := range both {
		id := fmt.Sprintf("job-%04d", i)
		writes = append(writes, put(id, "live", record.RankScheduler, "alice"), put(id, "past", record.RankImport, "erika"))
	}
	if _, err := rg.node.Write(t.Context(), &store.IngestCommand{Agent: "head1", Now: at, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: uint64(len(writes)), Writes: writes}); err != nil {
		t.Fatal(err)
	}
	var page v1.Holdings
	rg.get("/v1/holdings?name=erika", &page)
	if len(page.Holdings) != 1000 || !page.More || page.Holdings[0].RecordID != "job-0000" || page.Holdings[0].Record == nil || page.Holdings[0].Record.Meta["user_id"][0] != "alice" || len(page.Holdings[0].Holdings) != 2 {
		t.Fatalf("%d, more %t: %+v", len(page.Holdings), page.More, page.Holdings[:1])
	}
	after := page.Holdings[999].RecordID
	page = v1.Holdings{}
	rg.get("/v1/holdings?name=erika&after="+after, &page)
	if len(page.Holdings) != 1 || page.More || page.Holdings[0].RecordID != "job-1000" {
		t.Errorf("more %t: %+v", page.More, page.Holdings)
	}
	rg.get("/v1/holdings?name=erika&key=home", &page)
	if len(page.Holdings) != 0 {
		t.Errorf("%+v", page.Holdings)
	}
	if a := rg.do("GET", "/v1/holdings", ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, "name is missing") {
		t.Error(a)
	}
}
