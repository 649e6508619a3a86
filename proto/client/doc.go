// Package client speaks the REST API of an aggregator, and of AUDITOR: one call
// a route, with contexts, and errors that say what happened.
//
//	c, err := client.New(client.Options{Address: "http://127.0.0.1:8000"})
//	...
//	for r, err := range c.Query(ctx, url.Values{"limit": {"10"}}) {
//		if err != nil {
//			return err // also when the answer was cut short
//		}
//		fmt.Println(r.ID)
//	}
//
// A write whose answer was lost may have happened. Repeating it is safe: an Add
// that had happened is [ErrExists], and an Update is the same twice.
package client
