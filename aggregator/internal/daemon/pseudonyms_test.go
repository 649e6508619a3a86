package daemon

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/racetest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// personal are texts of the world with secrets that name or describe a person.
func personal() []string {
	return []string{"secret-user", "secret-pi", "secret person", "secret-value", "secret-key", "leader"}
}

func TestPseudonyms_AnyRouteLoginAndFormat_NameNoPerson(t *testing.T) {
	rules := access.Rules{Clients: map[string]access.Client{}}
	for _, name := range []string{"agency", "agency-admin"} {
		rules.Clients[name] = access.Client{Rows: access.AllRows(), Pseudonyms: true}
	}
	oidcGroup(&rules, "agency", access.GroupClient{Rights: identity.Read, Rows: access.AllRows(), Pseudonyms: true})
	g := configured(t, secretWorld, rules)
	all := g.client(identity.Identity{Role: identity.Client, Name: "all", Rights: identity.Admin})
	g.sow(all)
	ways := g.ways("agency", identity.Read, enrol.Scope{Pseudonyms: true})
	// A certificate that gives more gives no more to who sees pseudonyms.
	ways = append(ways, way{"certificate of an admin", "", g.client(identity.Identity{Role: identity.Client, Name: "agency-admin", Rights: identity.Admin})})
	seed := rand.Uint64()
	t.Log("seed", seed)
	c := anyClient(ways, seed)
	known, shown := 0, map[string]bool{}
	for _, route := range g.agg.server.Served() {
		need, example := access.Routes()[route], matrix()[route][1]
		if need.Open || strings.HasSuffix(route, "/openapi.yaml") || strings.Contains(route, "static") {
			continue
		}
		path, _, _ := strings.Cut(example, "?")
		for _, path := range secretPaths(path) {
			queries := append(asked(path), "where[user_id]=secret-user&window=2026-02", "window=2026-02&by=user_id&measure=records,cost", "by=secret-key&window=2026-02", "meta[secret-key][c][0]=secret-value", "sort_by[asc]=user_id", "ledger=true")
			for _, query := range queries[:racetest.Few(len(queries))] {
				for _, format := range []string{"", "&format=csv", "&format=ndjson"} {
					address := path + "?" + query + format
					status, text := ask(t, c, g.tls, route, address)
					text = strings.ToLower(text)
					for _, said := range personal() {
						if strings.Contains(address, said) {
							text = strings.ReplaceAll(text, said, "")
						}
					}
					for _, name := range personal() {
						if at := strings.Index(text, name); at >= 0 {
							t.Fatalf("%s by %s: %.300s", address, lastWay(c), text[max(0, at-100):])
						}
					}
					switch {
					case !need.Pseudonyms && status != http.StatusForbidden && status != 0:
						t.Errorf("%s by %s: %d %.300s", address, lastWay(c), status, text)
					case need.Pseudonyms && status < http.StatusBadRequest:
						shown[route] = true
					}
					if _, text := ask(t, all, g.tls, "GET", address); slices.ContainsFunc(personal(), func(name string) bool { return strings.Contains(text, name) }) {
						known++
					}
				}
			}
		}
	}
	for route, need := range access.Routes() {
		if need.Pseudonyms && !shown[route] && !strings.Contains(route, "{anything") && !strings.Contains(route, "static") && !strings.Contains(route, "openapi") && !racetest.Enabled {
			t.Errorf("%s shows nothing to a reader of pseudonyms", route)
		}
	}
	if known < 50 && !racetest.Enabled {
		t.Errorf("only %d answers to who sees everything name a person", known)
	}
}

func TestPseudonyms_Usage_IsThatOfNames(t *testing.T) {
	rules := access.Rules{Clients: map[string]access.Client{"agency": {Rows: access.AllRows(), Pseudonyms: true}}}
	g := configured(t, secretWorld, rules)
	all := g.client(identity.Identity{Role: identity.Client, Name: "all", Rights: identity.Admin})
	g.sow(all)
	agency := g.client(identity.Identity{Role: identity.Client, Name: "agency", Rights: identity.Read})
	figures := func(c *http.Client, query string) (figures, groups []string) {
		t.Helper()
		_, text := ask(t, c, g.tls, "GET", "/v1/usage?window=2026-02&measure=records,Cores,cost&"+query)
		var u v1.Usage
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Fatal(err, text)
		}
		for i := range u.Groups {
			one, err := json.Marshal(u.Groups[i])
			if err != nil {
				t.Fatal(err)
			}
			groups = append(groups, string(one))
		}
		for _, m := range u.Measures {
			values := []string{}
			for _, v := range m.Values {
				if v == nil {
					values = append(values, "unknown")
				} else {
					values = append(values, v.String())
				}
			}
			slices.Sort(values)
			figures = append(figures, m.Name+" "+strings.Join(values, " "))
		}
		return figures, groups
	}
	for _, query := range []string{"by=user_id", "by=user_id,group_id", "by=project", "by=pi,user_id"} {
		want, _ := figures(all, query)
		got, groups := figures(agency, query)
		if !slices.Equal(want, got) || len(groups) < 2 {
			t.Errorf("%s: %v %v, want %v", query, got, groups, want)
		}
	}
	_, text := ask(t, agency, g.tls, "GET", "/v1/records?meta[group_id][c][0]=secret-group")
	at := strings.Index(text, access.PseudonymPrefix)
	if at < 0 {
		t.Fatal(text)
	}
	pseudonym, _, _ := strings.Cut(text[at:], `"`)
	want, _ := figures(all, "where[user_id]=secret-user")
	for _, query := range []string{"where[user_id]=" + pseudonym, "meta[user_id][c][0]=" + url.QueryEscape(pseudonym)} {
		if got, _ := figures(agency, query); !slices.Equal(want, got) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}
