package columns_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestADictionaryAnswersWhatItsBlocksHold(t *testing.T) {
	d := columns.NewDict()
	row := columns.Row{
		Record: record.Record{
			ID: "a-1", Meta: record.Meta{{Key: "empty"}, {Key: "site", Values: []string{"x", "y"}}},
			Components: []record.Component{{Name: "Cores", Amount: 4, Scores: []record.Score{{Name: "HS", Value: 2}}}},
			Stop:       record.None, Submit: record.None,
		},
		Stop: record.None, Seq: 1,
	}
	b := decode(t, encode(t, d, columns.Part{Rows: []columns.Row{row}}).Data, d)
	sets, err := b.Sets()
	if err != nil {
		t.Fatal(err)
	}
	m, inline, ok := d.Meta(sets[0])
	if diff := cmp.Diff(row.Record.Meta, m); diff != "" || inline || !ok {
		t.Errorf("meta, %v, %v: %s", inline, ok, diff)
	}
	templates, err := b.Templates()
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := d.Template(templates[0]); !ok || len(c) != 1 || c[0].Name != "Cores" || c[0].Amount != 0 || c[0].Scores[0].Value != 2 {
		t.Errorf("template %v, %v", c, ok)
	}
	var values []string
	d.Values("site", func(id uint32, value string) bool {
		if key, again, ok := d.Pair(id); !ok || key != "site" || again != value {
			t.Errorf("pair %d is %q=%q", id, key, again)
		}
		values = append(values, value)
		return true
	})
	if diff := cmp.Diff([]string{"x", "y"}, values); diff != "" {
		t.Error(diff)
	}
	if _, ok := d.EmptyKV("empty"); !ok {
		t.Error("a key without values has no number")
	}
	if _, ok := d.InlineKV("site"); ok {
		t.Error("a key with few values is inline")
	}
}

func TestADictionaryLoadsOnlyWhatComesNext(t *testing.T) {
	bad := []columns.Entry{
		{Table: 0, ID: 1},
		{Table: 99, ID: 1},
		{Table: columns.TableKey, ID: 2},
		{Table: columns.TablePair, ID: 1, Data: []byte{5, 0, 'x'}},
		{Table: columns.TableSet, ID: 1, Data: []byte{1, 2}},
		{Table: columns.TableTemplate, ID: 1, Data: []byte{200}},
		{Table: columns.TableID, ID: 1, Data: []byte{9}},
	}
	for _, e := range bad {
		if err := columns.NewDict().Load(e); !errors.Is(err, columns.ErrCorrupt) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if err := columns.NewDict().LoadState([]byte{9}); !errors.Is(err, columns.ErrFormat) {
		t.Errorf("state of a newer format: %v", err)
	}
}
