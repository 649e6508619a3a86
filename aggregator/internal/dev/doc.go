// Package dev is `bursar dev`: an aggregator and an agent with its plugins as real
// processes in one folder, with certificates for the occasion, so that a newcomer
// sees bursar at work within seconds.
//
// What is started is what runs in production; only the configuration is
// generated. Everything ends with this process, whatever ends it.
package dev
