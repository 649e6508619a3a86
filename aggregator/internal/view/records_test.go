package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestRecords_RunningFailedAndNegative_AreSaidInWords(t *testing.T) {
	list := []v1.FullRecord{
		{RecordID: "open", StartTime: march(12)},
		{
			RecordID: "failed", Meta: v1.Meta{"group": {"a,b"}, "user": {"c", "d"}, "job": {"relax"}}, StartTime: march(12), StopTime: march(39), Runtime: new(int64(97200)), State: "FAILED", ExitCode: new(int64(2)), ExitSignal: new(int64(9)),
			Components: []v1.FullComponent{{Name: "Cores", Amount: 8}, {Name: "Memory", Amount: 16000}, {Name: "TotalCPU", Amount: 5}, {Name: "Licences", Amount: 2}},
		},
		{RecordID: "back", StartTime: march(13), StopTime: march(12), Runtime: new(int64(-3600)), Negative: true, State: "RUNNING", ExitCode: new(int64(0))},
	}
	l := view.Records(list, "group", "user")
	wantExactList(t, l, `record|site|group|user|job|components|start|stop|runtime|state|exit_code
open||||||2026-03-01T12:00:00Z||running||
failed||a,b|c,d|relax|Cores 8, Memory 16 000 MiB, TotalCPU 5 s, Licences 2|2026-03-01T12:00:00Z|2026-03-02T15:00:00Z|97200|FAILED|2, signal 9
back||||||2026-03-01T13:00:00Z|2026-03-01T12:00:00Z|-3600|RUNNING|0
1 record stops before it starts; its usage is zero.`)
	if view.ToneOf("running") != view.Good || view.ToneOf("RUNNING") != view.Good {
		t.Error("a word has two tones")
	}
	wantExactList(t, view.Records(append(list[2:], list[2], v1.FullRecord{RecordID: "x", StopTime: march(12), ExitCode: new(int64(0)), ExitSignal: new(int64(9))}), "group", "user"), `record|site|group|user|job|components|start|stop|runtime|state|exit_code
back||||||2026-03-01T13:00:00Z|2026-03-01T12:00:00Z|-3600|RUNNING|0
back||||||2026-03-01T13:00:00Z|2026-03-01T12:00:00Z|-3600|RUNNING|0
x|||||||2026-03-01T12:00:00Z|||signal 9
2 records stop before they start; their usage is zero.`)
	wantExactList(t, view.Records(nil, "group", "user"), "record|site|group|user|job|components|start|stop|runtime|state|exit_code\nNo record matches.")
}
