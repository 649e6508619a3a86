package host_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestASourceThatHandsOnPushesHasNothingToMap(t *testing.T) {
	good := func() *bursarv1.DescribeResponse {
		return &bursarv1.DescribeResponse{Type: "x", Interval: "1m", Rank: uint32(record.RankPush), Pushed: true}
	}
	if err := host.CheckDescription("x", good()); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*bursarv1.DescribeResponse){
		"has attributes": func(d *bursarv1.DescribeResponse) {
			d.Attributes = []*bursarv1.Attribute{{Name: "a", Type: bursarv1.Type_TYPE_INT}}
		},
		"or a mapping": func(d *bursarv1.DescribeResponse) { d.Mapping = "id = 1" },
		"its rank is":  func(d *bursarv1.DescribeResponse) { d.Rank = uint32(record.RankScheduler) },
	} {
		d := good()
		change(d)
		if err := host.CheckDescription("x", d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
