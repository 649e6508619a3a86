// Package daemon puts the aggregator together: it alone knows all the others.
package daemon
