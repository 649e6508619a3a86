//go:build e2e

package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// framedWidget looks at the widget in the page of another origin.
func (d *desk) framedWidget(t *testing.T) {
	card := d.lab.As("curie") + "/ui/widget"
	query := "/?" + url.Values{"card": {card}}.Encode()
	allowed := d.browser.Tab(t, d.lab.Dashboard)
	allowed.Look("light", 1280, 900)
	allowed.Open(query, 200)
	d.lab.Eventually("the widget in the frame", func() (bool, string) {
		text, err := inFrame(allowed, card, "document.body.innerText")
		return err == nil && strings.Contains(text, "core-hours") && strings.Contains(text, "jobs running"), fmt.Sprint(text, err)
	})
	for _, look := range looks() {
		allowed.Look(look.scheme, look.width, look.height)
		if wide, err := inFrame(allowed, card, "String("+beyond+")"); err != nil || wide != "0" {
			t.Errorf("%s %d: the card is %s pixels wider than its frame, %v", look.scheme, look.width, wide, err)
		}
	}
	allowed.Look("light", 1280, 900)
	if _, err := inFrame(allowed, card, `document.querySelector(".links a").click()`); err != nil {
		t.Fatal(err)
	}
	allowed.Await(`location.origin === ` + quote(strings.TrimSuffix(card, "/ui/widget")) + ` && window === window.top && document.querySelector("nav") !== null`)

	for what, at := range map[string]struct{ origin, page string }{
		"the widget in a page of another origin":        {newDashboard(t), card},
		"another page in a page of a configured origin": {d.lab.Dashboard, strings.TrimSuffix(card, "widget") + "usage"},
	} {
		tab := d.browser.Tab(t, at.origin)
		tab.Look("light", 1280, 900)
		tab.Open("/?"+url.Values{"card": {at.page}}.Encode(), 200)
		said := ""
		d.lab.Eventually("the refusal of "+what, func() (bool, string) {
			said += strings.Join(tab.Problems(), "\n")
			return strings.Contains(said, "frame-ancestors"), said
		})
		if text, err := inFrame(tab, at.page, "document.body.innerText"); err == nil {
			t.Errorf("%s shows %q", what, text)
		}
	}
}

func quote(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // no text fails
	}
	return string(out)
}

// inFrame returns the value of an expression in the frame that shows an address.
func inFrame(tab *Tab, address, expression string) (string, error) {
	ctx, cancel := context.WithTimeout(tab.ctx, 10*time.Second)
	defer cancel()
	tree, err := chromedp.Call(ctx, cdppage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return "", err
	}
	for _, child := range tree.FrameTree.ChildFrames {
		if child.Frame.URL != address {
			continue
		}
		world, err := chromedp.Call(ctx, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: child.Frame.ID})
		if err != nil {
			return "", err
		}
		out, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: world.ExecutionContextID, ReturnByValue: new(true), UserGesture: new(true)})
		if err != nil || out.Result == nil {
			return "", errors.Join(err, errors.New("no result"))
		}
		var text string
		_ = json.Unmarshal(out.Result.Value, &text) // a click has none
		return text, nil
	}
	return "", fmt.Errorf("no frame shows %s", address)
}
