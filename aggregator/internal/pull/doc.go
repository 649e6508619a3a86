// Package pull brings the agents' frames into the store: one loop an agent, on
// the leader only.
//
// The order is always pull → commit → acknowledge. Where to pull is the cursor in
// the store, never memory; a command that does not continue the cursor changes
// nothing, so that a repeated one, one of a deposed leader and one whose outcome
// is unknown are harmless. What is acknowledged is the cursor that the store
// answers. While one batch is committed the next is pulled already.
package pull
