package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestKinds_OneAndNone_AgreeInNumber(t *testing.T) {
	wantExactList(t, view.Kinds(v1.Kinds{}), "component|stored|becomes|records\nNo records would be changed.")
	wantExactList(t, view.Kinds(v1.Kinds{Records: 1, Kinds: []v1.Kind{{Component: "TotalCPU", Stored: "rate", Kind: "total", Records: 1}}}), "component|stored|becomes|records\nTotalCPU|rate|total|1\n1 record would be changed.")
}
