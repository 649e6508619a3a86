// Command bursar-action-priority sets the priorities of groups in a scheduler by what
// they have used.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return new(action) }) }
