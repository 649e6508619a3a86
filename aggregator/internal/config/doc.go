// Package config is the aggregator's configuration file: what may stand in it,
// what it means when it does not, and what is wrong with it, all at once and with
// the place.
//
// A key that this program does not act on is an error, never ignored.
package config
