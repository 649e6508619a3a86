//go:build e2e

package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// unsound is a page with all that must not be.
const unsound = `<!doctype html><html lang="en"><head><title>Unsound</title><script src="/loud.js"></script><script>document.title = "inline"</script></head>
<body><main><h1>Unsound</h1><p><img src="http://outside.invalid/spy.gif" alt=""><img src="/gone.png"></p>
<div id="wide">wide</div><div id="cut"><p id="long">cut</p></div><div class="chart"><svg id="chartless"></svg></div></main><footer>footer</footer></body></html>`

const loud = `console.error("loud", 7); addEventListener("load", () => { document.getElementById("wide").style.width = "4000px"; document.getElementById("cut").style.overflow = "auto"; document.getElementById("long").style.width = "5000px"; document.getElementById("chartless").style.display = "none"; throw new Error("thrown"); });`

// anUnsoundPage shows that what the other tests look for would be seen.
func (d *desk) anUnsoundPage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; img-src *")
			fmt.Fprint(w, unsound)
		case "/loud.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, loud)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	tab := d.browser.Tab(t, server.URL)
	tab.Look("light", 360, 740)
	tab.Open("/", 200)
	tab.Await(`document.getElementById("wide").style.width`)
	if wide := Eval[int](tab, beyond); wide <= 0 || !strings.Contains(Eval[string](tab, widest), "wide") {
		t.Errorf("it is only %d pixels wider than the window", wide)
	}
	if found := tab.Violations(d.axe, false); !slices.ContainsFunc(found, func(v Violation) bool { return v.ID == "image-alt" && v.Serious() }) {
		t.Errorf("axe-core found %v", found)
	}
	tab.Print("light")
	printed := strings.Join(Eval[[]string](tab, misprinted), "\n")
	for _, want := range []string{`cuts off <div id="cut"`, "has <footer>", `lacks <svg id="chartless"`} {
		if !strings.Contains(printed, want) {
			t.Errorf("on paper %q is not noticed; only\n%s", want, printed)
		}
	}
	problems := strings.Join(tab.Problems(), "\n")
	for _, want := range []string{`console: "loud"`, "thrown", "another host: http://outside.invalid/spy.gif", "gone.png: status 404", "Content Security Policy"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not noticed; only\n%s", want, problems)
		}
	}
}
