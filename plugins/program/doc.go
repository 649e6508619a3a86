// Package program runs programs for actions: on this machine, without a shell, as the
// user of this process, with a minimal environment, in a process group of their own.
// The aggregator runs those of its actions with it, and an agent those that its
// configuration allows.
package program
