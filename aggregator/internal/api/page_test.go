package api

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func FuzzParsePage(f *testing.F) {
	good, err := encodeCursor(store.Position{Seq: 7})
	if err != nil {
		f.Fatal(err)
	}
	for _, query := range []string{"", "limit=3&format=csv", "open=true&order=change&after=9", "after=-1", "cursor=" + good, "cursor=e30", "cursor=%%%", "order=change&sort_by[asc]=runtime"} {
		f.Add(query, "application/x-ndjson")
	}
	f.Fuzz(func(t *testing.T, query, accept string) {
		r := &http.Request{Header: http.Header{"Accept": {accept}}, URL: &url.URL{RawQuery: query}}
		p, err := parsePage(r)
		if (err != nil) && err.Error() == "" {
			t.Error("an error without words")
		}
		if err == nil && p.query.Resume != nil {
			sameCursor(t, *p.query.Resume)
		}
		if a, err := parseChanges(r); err == nil && a.cursor != nil {
			if again, err := decodeLedgerCursor(a.cursor.encodeLedgerCursor()); err != nil || *again != *a.cursor {
				t.Errorf("%+v comes back as %+v, %v", a.cursor, again, err)
			}
		}
		_, _ = decodeCursor(query)
	})
}

// sameCursor states that a position comes back from its cursor.
func sameCursor(t *testing.T, p store.Position) {
	t.Helper()
	text, err := encodeCursor(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := decodeCursor(text); err != nil || !reflect.DeepEqual(*again, p) {
		t.Errorf("%+v comes back as %+v, %v", p, again, err)
	}
}
