// Package origin refuses what a browser asks for in the name of a page of another
// site: by the host that a request names, and by where the page came from. Agents and
// aggregators share it.
package origin
