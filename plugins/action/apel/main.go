// Command bursar-action-apel is the action plugin for APEL: it reports the months of
// sites to EGI's accounting. See README.md.
package main

import (
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/action"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func main() { sdk.ServeAction(func() sdk.Action { return action.New() }) }
