package source

import (
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
)

func TestReadme_HasTheTableOfSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}
