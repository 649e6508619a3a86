// Command bursar-action-alert tells people and programs what needs attention, and when it is
// over.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return new(action) }) }
