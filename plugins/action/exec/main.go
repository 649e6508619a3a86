// Command bursar-action-exec runs a program with usage, or with the records that
// have changed since the last time.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return new(action) }) }
