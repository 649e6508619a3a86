// Command bursar-action-webhook posts usage, or the records that have changed since
// the last time, to a URL.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return new(action) }) }
