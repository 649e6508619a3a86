//go:build e2e

package pages

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab shows pages of a server. What goes wrong in it is kept, see [Tab.Problems].
type Tab struct {
	t    testing.TB
	ctx  context.Context
	base *url.URL

	mu       sync.Mutex
	problems []string
	missing  string // an address whose status is expected to be an error
}

// Tab opens a tab for the pages below an address; it closes with the test.
func (b *Browser) Tab(t testing.TB, base string) *Tab {
	t.Helper()
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	tab := &Tab{t: t, base: at}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithListener(tab.hearEvent))
	t.Cleanup(cancel)
	// The first run opens the tab, which lives as long as the context of that run.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	tab.ctx = ctx
	return tab
}

// hearEvent keeps what must not be.
func (tab *Tab) hearEvent(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		tab.noteFault("exception: %s", exceptionText(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "assert" {
			tab.noteFault("console: %s", consoleText(e.Args))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && (e.Entry.Source != cdplog.EntrySourceNetwork || !tab.isExpected(e.Entry.URL)) {
			tab.noteFault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		// Chromium draws the icon of a field for a date from a data: address of its own.
		if at, err := url.Parse(e.Request.URL); err != nil || at.Scheme != "data" && at.Host != tab.base.Host {
			tab.noteFault("a request to another host: %.200s", e.Request.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 && !tab.isExpected(e.Response.URL) {
			tab.noteFault("%s: status %d", e.Response.URL, e.Response.Status)
		}
	}
}

func exceptionText(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + e.Exception.Description + string(e.Exception.Value)
	}
	return e.Text
}

func consoleText(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		words = append(words, string(a.Value)+a.Description)
	}
	return strings.Join(words, " ")
}

func (tab *Tab) noteFault(format string, args ...any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.problems = append(tab.problems, fmt.Sprintf(format, args...))
}

func (tab *Tab) isExpected(address string) bool {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return address == tab.missing
}

// Problems returns what has gone wrong since it was asked last.
func (tab *Tab) Problems() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	all := slices.Clone(tab.problems)
	tab.problems = nil
	return all
}

// get does something in the tab, within the patience.
func get[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.t.Fatalf("%s: %v; before that: %q", what, err, tab.Problems())
	}
	return value
}

// callProtocol sends a command of the protocol.
func (tab *Tab) callProtocol(what string, send func(ctx context.Context) error) {
	tab.t.Helper()
	get(tab, what, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error { return send(ctx) }))
}

// Look says how the pages are looked at from now on: in which colours, and in a window
// of which size. One that is narrower than 500 px is a phone.
func (tab *Tab) Look(scheme string, width, height int64) {
	tab.t.Helper()
	tab.emulate("screen", scheme, width, height)
}

// Print shows the pages from now on as they are printed on A4 by someone who reads them in these
// colours. Chromium prints with margins of 1 cm.
func (tab *Tab) Print(scheme string) {
	tab.t.Helper()
	tab.emulate("print", scheme, 718, 1047)
}

func (tab *Tab) emulate(media, scheme string, width, height int64) {
	tab.t.Helper()
	tab.callProtocol("change the look", func(ctx context.Context) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media, Features: features}); err != nil {
			return err
		}
		size := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500}
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, size)
		return err
	})
}

// Script turns the pages' own scripts on or off.
func (tab *Tab) Script(on bool) {
	tab.t.Helper()
	tab.callProtocol("turn scripts on or off", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	})
}

// Open opens a page of the server, by its path, and waits until it is there with all
// that its scripts add. It fails the test when the status is another one.
func (tab *Tab) Open(path string, status int64) {
	tab.t.Helper()
	tab.Load(path, status)
	tab.Ready()
}

// Load is Open without waiting for scripts.
func (tab *Tab) Load(path string, status int64) {
	tab.t.Helper()
	if got := tab.loadPage(path, status >= 400); got != status {
		tab.t.Errorf("%s: status %d, want %d", path, got, status)
	}
}

// Refused is Open of a page that may be refused: with 403 or 404, or with one of those that are named.
func (tab *Tab) Refused(path string, statuses ...int64) {
	tab.t.Helper()
	if status := tab.loadPage(path, true); !slices.Contains(append(statuses, 200, 403, 404), status) {
		tab.t.Errorf("%s: status %d", path, status)
	}
	tab.Ready()
}

// loadPage opens a page and returns its status, which may be an error.
func (tab *Tab) loadPage(path string, refused bool) int64 {
	tab.t.Helper()
	at, err := tab.base.Parse(path)
	if err != nil {
		tab.t.Fatal(err)
	}
	tab.mu.Lock()
	tab.missing = ""
	if refused {
		tab.missing = at.String()
	}
	tab.mu.Unlock()
	return get(tab, path, chromedp.NavigateResponse(at.String())).Status
}

// drawn says that a page is there: its scripts have run, and a chart is drawn.
const drawn = `document.readyState === "complete" && [...document.querySelectorAll("#chart")].every(c => "ready" in c.dataset)`

// Ready waits until the page is there with all that its scripts add.
func (tab *Tab) Ready() {
	tab.t.Helper()
	tab.Await(drawn)
}

// Await waits until an expression is true in the page. A page that another one replaces
// while it is asked answers with an error: the next one is asked again.
func (tab *Tab) Await(expression string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")", chromedp.EvalAwaitPromise))
		switch {
		case err == nil && is:
			return
		case ctx.Err() != nil:
			tab.t.Fatalf("not within %s: %s: %v; before that: %q", patience, expression, err, tab.Problems())
		case err != nil && !isReplaced(err):
			tab.t.Fatalf("%s: %v; before that: %q", expression, err, tab.Problems())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// isReplaced says that an expression was not evaluated because another page came.
func isReplaced(err error) bool {
	says, ok := errors.AsType[*cdproto.Error](err)
	return ok && (strings.Contains(says.Message, "navigated") || strings.Contains(says.Message, "context"))
}

// Eval returns the value of an expression in the page, of its promise when it is one.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return get(tab, expression[:min(len(expression), 200)], chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Picture is what is seen of the page, as a PNG.
func (tab *Tab) Picture() []byte {
	tab.t.Helper()
	return get(tab, "take a picture", chromedp.CaptureScreenshot())
}

// WholePicture is all of the page, as a PNG.
func (tab *Tab) WholePicture() []byte {
	tab.t.Helper()
	return get(tab, "take a picture", chromedp.FullScreenshot(100))
}

// HTML is all that the page has, what is hidden included.
func (tab *Tab) HTML() string {
	tab.t.Helper()
	return Eval[string](tab, "document.documentElement.outerHTML")
}

// Follow clicks on the first element of a selector of CSS that has a text, and waits
// until another page is there.
func (tab *Tab) Follow(selector, text string) {
	tab.t.Helper()
	found := Eval[bool](tab, fmt.Sprintf(`(() => {
  window.left = true;
  const link = [...document.querySelectorAll(%q)].find(a => a.textContent.includes(%q));
  link?.click();
  return Boolean(link);
})()`, selector, text))
	if !found {
		tab.t.Fatalf("%s has no %s with %q", Eval[string](tab, "location.href"), selector, text)
	}
	tab.Await("!window.left")
	tab.Ready()
}

// Drag presses the mouse at a place of an element, given as parts of its width and
// height, moves it to another one and lets go. A drag to the same place is a click.
func (tab *Tab) Drag(selector string, x0, y0, x1, y1 float64) {
	tab.t.Helper()
	box := Eval[struct{ X, Y, W, H float64 }](tab, fmt.Sprintf(`(() => {
  const e = document.querySelector(%q);
  e.scrollIntoView({ block: "center" });
  const r = e.getBoundingClientRect();
  return { X: r.x, Y: r.y, W: r.width, H: r.height };
})()`, selector))
	move := func(kind input.DispatchMouseEventType, part float64) chromedp.Action[chromedp.Void] {
		x, y := box.X+box.W*(x0+part*(x1-x0)), box.Y+box.H*(y0+part*(y1-y0))
		return chromedp.MouseEvent(kind, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1))
	}
	get(tab, "drag over "+selector, chromedp.Steps(
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box.X+box.W*x0, box.Y+box.H*y0),
		move(input.DispatchMouseEventTypeMousePressed, 0),
		move(input.DispatchMouseEventTypeMouseMoved, 0.5),
		move(input.DispatchMouseEventTypeMouseMoved, 1),
		move(input.DispatchMouseEventTypeMouseReleased, 1)))
}
