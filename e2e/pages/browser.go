//go:build e2e

package pages

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long a page may take on a machine that does much else.
const patience = time.Minute

// Browser is a Chromium with a profile of its own.
type Browser struct {
	ctx context.Context
}

// NewBrowser starts a Chromium that ends with the test.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	return startBrowser(t)
}

// NewTrustingBrowser is NewBrowser for servers with certificates of their own, and with
// localhost in their addresses.
func NewTrustingBrowser(t testing.TB) *Browser {
	t.Helper()
	return startBrowser(t, chromedp.IgnoreCertErrors,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost"))
}

// startBrowser starts a Chromium. More options count over its own.
func startBrowser(t testing.TB, more ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// A name of another host is not even looked up.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"))
	options = append(options, more...)
	// Its profile is removed when it has ended, so it is ended in order.
	allocated, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // a browser that has crashed has failed the test before
		cancel()
		end()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v; e2e/setup.sh browser installs it", err)
	}
	return &Browser{ctx}
}
