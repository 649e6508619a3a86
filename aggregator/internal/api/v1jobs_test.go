package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestJobs_ManyRecords_AreCutAndSaidSo(t *testing.T) {
	rg := newRig(t)
	var records []string
	for i := range 101 {
		records = append(records, fmt.Sprintf(`{"record_id":"own/p-4711_%d","meta":{"group_id":["g"]},"components":[],"start_time":"2024-01-03T00:00:00Z"}`, i))
	}
	rg.add(records[:100]...)
	var got v1.JobRecords
	if rg.get("/v1/jobs?id=4711", &got); len(got.Records) != 100 || got.More || got.Records[0] != "own/p-4711_0" {
		t.Errorf("%+v", got)
	}
	rg.add(records[100])
	if rg.get("/v1/jobs?id=4711", &got); len(got.Records) != 100 || !got.More {
		t.Errorf("%d %v", len(got.Records), got.More)
	}
	if rg.get("/v1/jobs?id=471", &got); got.Records == nil || len(got.Records) != 0 || got.More {
		t.Errorf("%+v", got)
	}
	for _, query := range []string{"", "?id=", "?job=4711", "?id=" + strings.Repeat("x", 2000)} {
		if a := rg.do("GET", "/v1/jobs"+query, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
