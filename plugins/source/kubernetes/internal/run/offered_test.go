package run

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

const (
	gpuDriver = `"driver":"gpu.nvidia.com","pool":{"name":"n1","generation":2}`
	h100      = `"attributes":{"type":{"string":"gpu"},"uuid":{"string":"U"},"productName":{"string":"NVIDIA H100"}}`
	mig3      = `"attributes":{"type":{"string":"mig"},"profile":{"string":"3g.40gb"}`
)

func TestOffered_CardsAndSlices_CountOnce(t *testing.T) {
	rules := &Rules{Driver: func(name string) bool { return name == "gpu.nvidia.com" }, Model: []string{"model"}}
	for name, c := range map[string]struct {
		slices []string // their specs
		cards  map[string]int64
		milli  int64
	}{
		"a card":                 {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + h100 + `}]}`}, map[string]int64{"NVIDIA-H100": 1}, 1000},
		"the node's model":       {[]string{`{` + gpuDriver + `,"nodeName":"labelled","devices":[{"name":"a",` + h100 + `}]}`}, map[string]int64{"H100-SXM": 1}, 1000},
		"no model":               {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a"}]}`}, map[string]int64{"": 1}, 1000},
		"node by device":         {[]string{`{` + gpuDriver + `,"perDeviceNodeSelection":true,"devices":[{"name":"a","nodeName":"n1"},{"name":"b","nodeName":"down"}]}`}, map[string]int64{"": 1}, 1000},
		"of several nodes":       {[]string{`{` + gpuDriver + `,"allNodes":true,"devices":[{"name":"a"}]}`}, map[string]int64{"": 1}, 1000},
		"of a node that is down": {[]string{`{` + gpuDriver + `,"nodeName":"down","devices":[{"name":"a"}]}`}, nil, 0},
		"of another driver":      {[]string{`{"driver":"nic.example.com","nodeName":"n1","devices":[{"name":"a"}]}`}, nil, 0},
		"an older generation": {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a"}]}`,
			`{"driver":"gpu.nvidia.com","pool":{"name":"n1","generation":1},"nodeName":"n1","devices":[{"name":"b"}]}`}, map[string]int64{"": 1}, 1000},
		"a pool in two slices":             {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a"}]}`, `{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"b"}]}`}, map[string]int64{"": 2}, 2000},
		"tainted":                          {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a","taints":[{"effect":"NoSchedule"}]},{"name":"b","taints":[{"effect":"None"}]}]}`}, map[string]int64{"": 1}, 1000},
		"passthrough of the card":          {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + h100 + `},{"name":"v","attributes":{"type":{"string":"vfio"},"uuid":{"string":"U"}}}]}`}, map[string]int64{"NVIDIA-H100": 1}, 1000},
		"slices alone":                     {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + mig3 + `}},{"name":"b",` + mig3 + `}}]}`}, nil, 857},
		"slices of a card that is offered": {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + h100 + `},{"name":"b",` + mig3 + `,"parentUUID":{"string":"U"}}}]}`}, map[string]int64{"NVIDIA-H100": 1}, 1000},
		"slices of another card":           {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + h100 + `},{"name":"b",` + mig3 + `,"parentUUID":{"string":"V"}}}]}`}, map[string]int64{"NVIDIA-H100": 1}, 1429},
		"possible slices of a card": {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + h100 + `,"consumesCounters":[{"counterSet":"c0"}]},{"name":"b",` + mig3 + `},"consumesCounters":[{"counterSet":"c0"}]}]}`},
			map[string]int64{"NVIDIA-H100": 1}, 1000},
		"slices that exclude each other": {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a",` + mig3 + `},"consumesCounters":[{"counterSet":"c0"}]},{"name":"b",` + mig3 + `},"consumesCounters":[{"counterSet":"c0"}]}]}`}, nil, 0},
		"an unknown profile":             {[]string{`{` + gpuDriver + `,"nodeName":"n1","devices":[{"name":"a","attributes":{"profile":{"string":"9z"}}}]}`}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*kube.Slice
			for _, spec := range c.slices {
				s := new(kube.Slice)
				if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), s); err != nil {
					t.Fatal(err)
				}
				all = append(all, s)
			}
			got := rules.Offered(all, func(node string) (map[string]string, bool) {
				labels := map[string]map[string]string{"n1": {}, "labelled": {"model": "H100-SXM"}}[node]
				return labels, labels != nil
			})
			if !maps.Equal(got.Cards, c.cards) || got.MilliGPUs() != c.milli {
				t.Errorf("cards %v, %d thousandths; want %v, %d", got.Cards, got.MilliGPUs(), c.cards, c.milli)
			}
		})
	}
}
