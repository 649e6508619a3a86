package translate_test

import (
	"math"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func TestRawInputIsMappedAgainAsItWas(t *testing.T) {
	attributes := []*bursarv1.Attribute{
		{Name: "id", Type: bursarv1.Type_TYPE_STRING}, {Name: "start", Type: bursarv1.Type_TYPE_TIME}, {Name: "stop", Type: bursarv1.Type_TYPE_TIME},
		{Name: "user", Type: bursarv1.Type_TYPE_STRING}, {Name: "cpus", Type: bursarv1.Type_TYPE_INT},
	}
	in := &bursarv1.Job{Run: "7", Excluded: true, Values: []*bursarv1.Value{
		{Kind: &bursarv1.Value_BytesValue{BytesValue: []byte{0xff, 'x'}}}, {Kind: &bursarv1.Value_IntValue{IntValue: 1 << 60}}, {},
		{Kind: &bursarv1.Value_StringValue{StringValue: "ä\n"}}, {Kind: &bursarv1.Value_IntValue{IntValue: -5}},
	}, Unread: []*bursarv1.Unread{{Attribute: "cpus", Problem: "16?"}}, Findings: []*bursarv1.Finding{{Kind: "column-unread", About: "cores", What: "is not read", Do: "look"}}}
	text, _ := translate.Raw(in, attributes)
	out, err := translate.ParseRaw(text, attributes)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.GetUnread()) != 1 || len(out.GetFindings()) != 1 {
		t.Error(out)
	}
	if again, _ := translate.Raw(out, attributes); string(again) != string(text) {
		t.Errorf("%s became %s", text, again)
	}
}

func TestTheRawInputInQuarantineKeepsItsBytes(t *testing.T) {
	attributes := []*bursarv1.Attribute{{Name: "b"}, {Name: "a"}, {Name: "list"}, {Name: "none"}, {Name: "map"}, {Name: "nan"}}
	in := &bursarv1.Job{Run: "7", Ended: true, Values: []*bursarv1.Value{
		{Kind: &bursarv1.Value_BytesValue{BytesValue: []byte{0xff}}},
		{Kind: &bursarv1.Value_FloatValue{FloatValue: 1.5}},
		{Kind: &bursarv1.Value_ListValue{ListValue: &bursarv1.ListValue{Values: []*bursarv1.Value{{Kind: &bursarv1.Value_BoolValue{BoolValue: true}}, {}}}}},
		{},
		{Kind: &bursarv1.Value_MapValue{MapValue: &bursarv1.MapValue{Values: map[string]*bursarv1.Value{"k": {Kind: &bursarv1.Value_IntValue{IntValue: 1 << 60}}}}}},
		{Kind: &bursarv1.Value_FloatValue{FloatValue: math.NaN()}},
	}}
	const want = `{"run":"7","ended":true,"attributes":{"a":1.5,"b":{"bytes":"/w=="},"list":[true,null],"map":{"k":1152921504606846976},"nan":null}}`
	if got, cut := translate.Raw(in, attributes); string(got) != want || cut {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(`{"run":"1","ended":true,"attributes":{"a":1,"b":{"bytes":"AA=="},"c":[1,"x",null,{"d":1.5}]}}`))
	attributes := []*bursarv1.Attribute{{Name: "a", Type: bursarv1.Type_TYPE_INT}, {Name: "b", Type: bursarv1.Type_TYPE_STRING}, {Name: "c", Type: bursarv1.Type_TYPE_MAP}}
	f.Fuzz(func(t *testing.T, text []byte) {
		job, err := translate.ParseRaw(text, attributes)
		if err == nil && (job.GetRun() == "" || len(job.GetValues()) != len(attributes)) {
			t.Errorf("%q gave %v", text, job)
		}
	})
}
