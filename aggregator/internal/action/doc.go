// Package action runs actions: plugins that turn totals into effects on the world.
//
// A [Manager] lives on every node. While its node leads, it plans runs when they
// are due, writes down each effect before it begins and how it ended, and has the
// plugins do them. On any node it shows what is written down, makes plans that
// no one carries out, and takes orders: to run, to pause, to resume, to retry and
// to skip. DESIGN.md has the reasons and the invariants.
package action
