// Package run puts the agent together: the buffer, a plugin and a collection
// loop for each source, the server that aggregators pull from, the metrics and
// the control socket. [Agent.Run] lives until its context ends; while it runs,
// [Agent.Reload] takes a new configuration over or refuses it as a whole.
package run
