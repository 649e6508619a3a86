// Package plugintest is the conformance suite that every source plugin passes,
// and what a test of a source or of a daemon needs: a source served in the
// test's process over real gRPC, a client that behaves like a daemon, the
// configuration tree of a source, and a FakeSource that keeps its promises.
//
//	func TestConformance(t *testing.T) {
//		plugintest.Run(t, plugintest.Options{
//			Source: func() sdk.Source { return newSource() },
//			Config: plugintest.Block("config", plugintest.Attr("path", path)),
//		})
//	}
package plugintest
