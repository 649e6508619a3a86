// Command bursar-action-warehouse is an action plugin: it follows the ledger of changes and
// keeps a copy of all closed records, with their sums by day and month, in ClickHouse.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return &action{} }) }
