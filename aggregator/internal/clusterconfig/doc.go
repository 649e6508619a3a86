// Package clusterconfig keeps the one configuration of a cluster: what shapes shared
// state or shared behaviour is committed to the log, and every node obeys what
// is in the log, never its own files.
//
// A [Document] is that part of a configuration in canonical form. A [Keeper]
// lives on every node: it says the active configuration, commits the files of the
// node that leads when they have changed, and reports where the node's files
// differ.
package clusterconfig
