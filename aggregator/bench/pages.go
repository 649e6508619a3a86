package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/chromedp/chromedp"
)

// chartPage shows a year of all records by group and week, as a chart and a table.
const chartPage = "/ui/usage?window=2024&by=group_id&measure=Cores&step=week&kind=area"

// measuredPages are those whose size is told, by name.
func measuredPages() [][2]string {
	return [][2]string{{"overview", "/"}, {"usage", chartPage}, {"records", "/ui/records"}, {"reports", "/ui/reports?report=usage&period=2024&by=group_id"}}
}

// pageLoads is how often the page with the chart is fetched.
const pageLoads = 50

// measurePages measures how long the page with a year's chart takes, without a browser and in
// one, and how large pages are.
func (b *bench) measurePages(ctx context.Context) error {
	s, err := b.firstSet(ctx)
	if err != nil {
		return err
	}
	if err := s.node.awaitIndexed(ctx); err != nil {
		return err
	}
	b.progress.beginPiece("the page of usage")
	var times []float64
	for range pageLoads {
		took, _, err := fetchTimed(ctx, s.node.baseURL()+chartPage, false)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	b.addLine(Line{
		Name: "page_usage", What: "page of a year's usage by group and week, the figures of its chart included: p99", Unit: "ms", Runs: 1,
		Measured: percentileOf(times, 99), Low: percentileOf(times, 50), High: percentileOf(times, 100), Spread: "p50–max",
	}.addNote("%d by HTTP, one after the other", pageLoads))
	if err := b.firstChart(ctx, s.node); err != nil {
		return err
	}
	for _, p := range measuredPages() {
		if err := b.pageSize(ctx, s.node, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// fetchTimed reads an answer to its end: the milliseconds that it took, and its content as
// it comes over the network, with gzip or without.
func fetchTimed(ctx context.Context, address string, gzip bool) (took float64, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	begun := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	return millisecondsSince(begun), body, nil
}

// loads are the files that a page loads, as it names them.
var loads = regexp.MustCompile(`(?:src|href|data-library)="(/ui/static/[^"]+)"`)

// pageSize tells how many bytes a page and its files are.
func (b *bench) pageSize(ctx context.Context, n *nodeSite, name, path string) error {
	_, page, err := fetchTimed(ctx, n.baseURL()+path, false)
	if err != nil {
		return err
	}
	paths, seen := []string{path}, map[string]bool{}
	for _, m := range loads.FindAllSubmatch(page, -1) {
		if file := string(m[1]); !seen[file] {
			seen[file] = true
			paths = append(paths, file)
		}
	}
	var plain, packed, alone int
	for _, p := range paths {
		_, whole, err := fetchTimed(ctx, n.baseURL()+p, false)
		if err != nil {
			return err
		}
		_, short, err := fetchTimed(ctx, n.baseURL()+p, true)
		if err != nil {
			return err
		}
		plain, packed = plain+len(whole), packed+len(short)
		if p == path {
			alone = len(short)
		}
	}
	size := float64(packed) / 1000
	b.addLine(Line{
		Name: "page_size_" + name, What: "size of the page " + name + " with all that it loads, over the network", Unit: "kB", Runs: 1,
		Measured: size, Low: size, High: size,
	}.addNote("%.0f kB without compression; %.0f kB when its %d files are known", float64(plain)/1000, float64(alone)/1000, len(paths)-1))
	return nil
}

// drawn is a promise that is kept when the chart is drawn.
const drawn = `new Promise((done) => {
  const look = () => (document.querySelector("#chart[data-ready]") ? done(true) : requestAnimationFrame(look));
  look();
})`

// firstChart measures how long a browser that has never seen the page needs until its
// chart is drawn.
func (b *bench) firstChart(ctx context.Context, n *nodeSite) error {
	line := Line{Name: "first_chart", What: "a browser that is new to it opens that page, until the chart is drawn", Unit: "ms"}
	if path, _ := exec.LookPath("chromium"); path == "" {
		line.Skipped = "there is no chromium"
		b.addLine(line)
		return nil
	}
	var times []float64
	for range max(b.runs, 3) {
		b.progress.beginPiece("a chart in Chromium")
		took, err := b.chartOnce(ctx, n.baseURL()+chartPage)
		if err != nil {
			return fmt.Errorf("chromium: %w", err)
		}
		times = append(times, took)
	}
	b.addLine(overRuns(line.Name, line.What, line.Unit, goal{}, times).addNote("Chromium without a GPU, with an empty cache each time"))
	return nil
}

func (b *bench) chartOnce(ctx context.Context, address string) (ms float64, err error) {
	profile, err := os.MkdirTemp(b.dir, "chromium-")
	if err != nil {
		return 0, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	defer end()
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil { // it runs, with an empty page
		return 0, err
	}
	limited, stop := context.WithTimeout(ctx, patience)
	defer stop()
	begun := time.Now()
	if err := chromedp.Do(limited, chromedp.Navigate(address)); err != nil {
		return 0, err
	}
	if _, err := chromedp.Run(limited, chromedp.Evaluate[bool](drawn, chromedp.EvalAwaitPromise)); err != nil {
		return 0, err
	}
	return millisecondsSince(begun), chromedp.Cancel(ctx)
}
