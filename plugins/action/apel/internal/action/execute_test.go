package action

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/action/apel/amstest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/outgoing"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
)

func plain(t *testing.T, message []byte) string {
	t.Helper()
	out, err := smime.Text(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// planned is a rig with a plan of so many rows.
func planned(t *testing.T, rows int) (*rig, sdk.Plan) {
	t.Helper()
	r := newRig(t, strings.ReplaceAll(oneSite, "\"ce1.example.org\"\n", "record.id\n"))
	for i := range rows {
		r.data.records = append(r.data.records, job(fmt.Sprintf("ce%d", i), "nemo", "2026-08-10T00:00:00Z", 60))
	}
	return r, r.plans(t, "2026-08-20T00:00:00Z", nil)
}

func (r *rig) does(t *testing.T, e sdk.Effect, attempt int) sdk.Result {
	t.Helper()
	return r.Execute(t.Context(), sdk.Attempt{Effect: e, Number: attempt, Fence: uint64(attempt), Key: "key-" + e.Name}, nil)
}

func TestTheReceiverGetsTheBytesThatWerePlanned(t *testing.T) {
	r, p := planned(t, 1)
	for i, e := range p.Effects {
		if result := r.does(t, e, 1); result.Outcome != sdk.Done || result.Reference != fmt.Sprint(i+1) {
			t.Fatalf("%+v", result)
		}
	}
	got := r.service.Messages()
	for i, e := range p.Effects {
		load, err := readPayload(e.Payload)
		if err != nil || string(load.data) != string(got[i].Data) || plain(t, got[i].Data) != e.Show {
			t.Errorf("%v: %s", err, got[i].Data)
		}
	}
	if got[0].Attributes["empaid"] != "20260820/20260820000000" || got[1].Attributes["empaid"] != "20260820/20260820000001" {
		t.Error(got[0].Attributes, got[1].Attributes)
	}
}

func TestARefusalIsNotRepeatedAndAnAbsenceIs(t *testing.T) {
	for _, c := range []struct {
		failure amstest.Failure
		want    sdk.Outcome
		text    string
	}{
		{amstest.Failure{What: "authx509", Status: 401}, sdk.Rejected, "GOCDB"},
		{amstest.Failure{What: "authx509", Status: 404}, sdk.Rejected, "AMS knows no such certificate"},
		{amstest.Failure{What: "authx509", Status: 503}, sdk.Retry, "503"},
		{amstest.Failure{What: "publish", Status: 401}, sdk.Rejected, "GOCDB"},
		{amstest.Failure{What: "publish", Status: 403}, sdk.Rejected, "gLite-APEL"},
		{amstest.Failure{What: "publish", Status: 408}, sdk.Retry, "408"},
		{amstest.Failure{What: "publish", Status: 500}, sdk.Retry, "500"},
		{amstest.Failure{What: "publish", Status: 504}, sdk.Retry, "504"},
		{amstest.Failure{What: "publish", Status: 0}, sdk.Unknown, "it may have arrived"},
		{amstest.Failure{What: "authx509", Status: 0}, sdk.Retry, "AMS token"},
		{amstest.Failure{What: "publish", Status: 413}, sdk.Rejected, "one record only"},
		{amstest.Failure{What: "publish", Status: 400}, sdk.Rejected, "400"},
	} {
		r, p := planned(t, 1)
		r.service.Fail(c.failure)
		if result := r.does(t, p.Effects[1], 1); result.Outcome != c.want || !strings.Contains(result.Message, c.text) {
			t.Errorf("%+v: %+v", c.failure, result)
		}
		if result := r.does(t, p.Effects[1], 2); result.Outcome != sdk.Done || len(r.service.Messages()) != 1 {
			t.Errorf("%+v, the second time: %+v", c.failure, result)
		}
	}
}

func TestAMessageWhoseAnswerWasLostIsSentAgainWithTheSameBytes(t *testing.T) {
	r, p := planned(t, 1)
	r.service.Fail(amstest.Failure{What: "publish", Done: true})
	if result := r.does(t, p.Effects[1], 1); result.Outcome != sdk.Unknown {
		t.Fatalf("%+v", result)
	}
	if result := r.does(t, p.Effects[1], 2); result.Outcome != sdk.Done {
		t.Fatalf("%+v", result)
	}
	if got := r.service.Messages(); len(got) != 2 || string(got[0].Data) != string(got[1].Data) {
		t.Errorf("%d messages", len(got))
	}
}

func TestAMessageThatIsTooLargeIsSplitUntilItFits(t *testing.T) {
	r, p := planned(t, 40)
	r.service.Limit(len(p.Effects[1].Payload) / 2)
	result := r.does(t, p.Effects[1], 1)
	if result.Outcome != sdk.Done || len(strings.Fields(result.Reference)) != len(r.service.Messages()) {
		t.Fatalf("%+v", result)
	}
	var receiver apeltest.Receiver
	for _, m := range r.service.Messages() {
		if err := receiver.Take(plain(t, m.Data), at("2026-08-20T00:00:00Z")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(receiver.Rows("APEL-norm")); n != 40 || len(r.service.Messages()) < 2 {
		t.Errorf("%d rows in %d messages", n, len(r.service.Messages()))
	}
}

func TestLongMonthsAreSeveralMessages(t *testing.T) {
	r, _ := planned(t, 100)
	r.config.maxMessage = 10_000
	p := r.plans(t, "2026-08-20T00:00:00Z", nil)
	rows := 0
	for _, e := range p.Effects {
		m, err := apeltest.Parse(text(t, e), at("2026-08-20T00:00:00Z"))
		if err != nil || len(text(t, e)) > 10_000 {
			t.Errorf("%v: %d bytes", err, len(text(t, e)))
		}
		rows += len(m.Records)
	}
	if rows != 200 || !strings.HasSuffix(p.Effects[len(p.Effects)-1].Name, "part=4/4") {
		t.Errorf("%d rows in %v", rows, names(p))
	}
}

func TestADirectoryGetsPlainMessagesOnce(t *testing.T) {
	dir := t.TempDir()
	a, err := configure(t, fmt.Sprintf("from = \"2026-08\"\ndirectory {\n  path = %q\n}\n%s", dir, oneSite))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Action: a, data: memory{records: []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60)}}}
	p := r.plans(t, "2026-08-20T00:00:00Z", nil)
	for range 2 { // the second attempt finds the first one's files
		for _, e := range p.Effects {
			result := r.does(t, e, 1)
			got, err := os.ReadFile(filepath.Join(dir, result.Reference))
			if result.Outcome != sdk.Done || err != nil || string(got) != e.Show {
				t.Errorf("%+v, %v\n%s", result, err, got)
			}
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(files) != 2 {
		t.Error(files, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if result := r.does(t, p.Effects[0], 1); result.Outcome != sdk.Retry || !strings.Contains(result.Message, dir) {
		t.Errorf("%+v", result)
	}
}

func TestAnEffectOfAnotherConfigurationIsRejected(t *testing.T) {
	r, p := planned(t, 1)
	r.config.ams, r.config.outgoing = nil, &outgoing.Queue{Path: t.TempDir(), Mode: 0o770}
	if result := r.does(t, p.Effects[0], 1); result.Outcome != sdk.Rejected {
		t.Errorf("%+v", result)
	}
	for _, bad := range []string{"", "{}\nx", "x\nx", `{"version":2}` + "\n"} {
		if result := r.does(t, sdk.Effect{Payload: []byte(bad)}, 1); result.Outcome != sdk.Rejected {
			t.Errorf("%q: %+v", bad, result)
		}
	}
}

func TestThePayloadsFormatStays(t *testing.T) {
	const golden = `{"version":1,"at":"2026-08-20T00:00:00Z","empaid":"20260820/20260820000000","signed":true}` + "\nAPEL\n"
	got, err := payload{At: at("2026-08-20T00:00:00Z"), ID: "20260820/20260820000000", Signed: true, data: []byte("APEL\n")}.encodePayload()
	if err != nil || string(got) != golden {
		t.Errorf("%s", got)
	}
	if p, err := readPayload([]byte(golden)); err != nil || p.ID != "20260820/20260820000000" || !p.Signed || string(p.data) != "APEL\n" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestTheStatesFormatStays(t *testing.T) {
	const golden = `{"version":1,"sites":{"UNI":{"through":"2026-08","sent":{"2026-08":{"digest":"d","jobs":1,"wall":2,"cpu":3,"rows":["12345678abcdef"],"days":{"2026-08-01":"e"}}}}}}`
	s, err := readState([]byte(golden))
	if err != nil || s.stateOf("UNI").Sent["2026-08"].CPU != 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	if got, err := s.encodeState(); err != nil || string(got) != golden {
		t.Errorf("%s, %v", got, err)
	}
}

func FuzzPayloadsAndStates(f *testing.F) {
	f.Add([]byte(`{"version":1,"signed":true}` + "\nx"))
	f.Add([]byte(`{"version":1,"sites":{"a":{"through":"2026-08","sent":{"2026-08":null}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readPayload(b)
		s, err := readState(b)
		if err != nil {
			return
		}
		if text, err := s.encodeState(); err != nil {
			t.Fatal(err)
		} else if _, err := readState(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
