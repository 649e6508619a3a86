// Command bursar-action-report sends reports by mail, or publishes them as a static site.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return new(action) }) }
