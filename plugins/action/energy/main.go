// Command bursar-action-energy writes the utilization of a month as comma separated values –
// core-hours, benchmark hours, CPU efficiency, energy and CO2 – and mails it.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return new(action) }) }
