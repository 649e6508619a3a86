// Package fakekube is an API server for tests: it lists pods in pages, lets them be
// watched, and forgets what happened, as a real one does. The end-to-end tests ask a real
// one.
package fakekube
