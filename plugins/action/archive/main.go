// Command bursar-action-archive is an action plugin: it writes closed records of past months
// to Parquet files in a directory or a bucket, and has the store keep of them only what
// usage needs.
package main

import "github.com/bursar-accounting/bursar/plugins/sdk"

func main() { sdk.ServeAction(func() sdk.Action { return &action{} }) }
