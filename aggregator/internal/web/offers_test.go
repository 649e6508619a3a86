package web_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestRecords_FieldsOfTheFilter_OfferValuesOfTheReadersRecords(t *testing.T) {
	s := filled(t)
	offers := func(who access.Principal) string {
		_, body, _ := s.getAs(who, "/ui/records")
		_, form, _ := strings.Cut(body, "<form")
		form, _, _ = strings.Cut(form, "</form>")
		return form
	}
	all := offers(access.Daemon())
	for _, want := range []string{`<datalist id="words-site"><option value="nemo">`, `<datalist id="words-group">`, `<datalist id="words-user">`, `<option value="bob">`, `list="words-user"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if own := offers(reader(identity.Read, access.Grant{"user_id": {"alice"}})); strings.Contains(own, "bob") || !strings.Contains(own, `<option value="alice">`) {
		t.Errorf("who sees some records is offered %s", own)
	}
}
