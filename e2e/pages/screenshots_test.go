//go:build e2e

package pages

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var screenshots = flag.String("screenshots", "", "write the pictures of the README into this `folder`")

// readmePictures are those of the README, by file.
func readmePictures() map[string]string {
	return map[string]string{
		"overview": "/",
		"usage":    "/ui/usage?window=14d&by=group_id&measure=Cores&step=day&kind=bars",
		"reports":  "/ui/reports?report=usage&by=group_id",
		"centre":   "/ui/centre?period=last-week",
	}
}

func (d *desk) takePictures(t *testing.T) {
	if err := os.MkdirAll(*screenshots, 0o755); err != nil {
		t.Fatal(err)
	}
	tab := d.browser.Tab(t, d.lab.Pages())
	for name, path := range readmePictures() {
		for _, scheme := range []string{"light", "dark"} {
			tab.Look(scheme, 1200, 800)
			tab.Open(path, 200)
			file := filepath.Join(*screenshots, name+"-"+scheme+".png")
			picture := tab.Picture()
			if err := os.WriteFile(file, picture, 0o644); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %d kB", file, len(picture)/1000)
		}
	}
}
