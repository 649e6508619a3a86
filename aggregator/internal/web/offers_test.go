package web_test

import (
	"net/http"
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

func TestPages_FieldsWithKeysAndValues_OfferThoseOfTheStore(t *testing.T) {
	s := filled(t)
	for path, want := range map[string][]string{
		"/ui/usage": {`name="where" list="words-where"`, `<option value="site_id=nemo">`, `<option value="user_id=b=c">`, `<option value="host=">`},
		"/ui/records?key=host": {
			`name="key" value="host" list="words-key"`, `<datalist id="words-key"><option value="group_id"><option value="host">`, `list="words-component"`,
			`<datalist id="words-component"><option value="Cores"><option value="GPUs">`, `<datalist id="words-value"><option value="node-1">`, `<datalist id="words-find">`, `<option value="user=bob">`,
		},
		"/ui/reports?report=usage": {`<option value="pi"><option value="host">`},
		"/ui/budgets":              {`name="name" value="" list="words-name"`, `<datalist id="words-name"><option value="cms">`},
	} {
		code, body, _ := s.get(path)
		for _, part := range want {
			if code != http.StatusOK || !strings.Contains(body, part) {
				t.Errorf("%s: %d: no %s in %s", path, code, part, body)
			}
		}
	}
	if _, body, _ := s.getAs(reader(identity.Read, access.Grant{"user_id": {"alice"}}), "/ui/usage?window=2026-02"); strings.Contains(body, "user_id=bob") || !strings.Contains(body, "user_id=alice") {
		t.Errorf("who sees some records is offered %s", body)
	}
}

func TestUsage_ConditionOfTheForm_BecomesOneOfTheAddress(t *testing.T) {
	s := filled(t)
	for query, want := range map[string]string{
		"where=user_id%3Dbob&window=2026-02":              "/ui/usage?where%5Buser_id%5D=bob&window=2026-02",
		"where=group%3Datlas,cms&where%5Bsite_id%5D=nemo": "/ui/usage?where%5Bgroup_id%5D=atlas%2Ccms&where%5Bsite_id%5D=nemo",
	} {
		if code, _, header := s.get("/ui/usage?" + query); code != http.StatusSeeOther || header.Get("Location") != want {
			t.Errorf("%s: %d %s", query, code, header.Get("Location"))
		}
	}
	if code, body, _ := s.get("/ui/usage?where=bob"); code != http.StatusBadRequest || !strings.Contains(body, "use KEY=VALUE, for example user_id=NAME") {
		t.Errorf("%d %s", code, body)
	}
}
