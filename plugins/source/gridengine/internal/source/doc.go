// Package source is the Grid Engine source: it follows the accounting files of one
// or several cells and sends each line that tells of a run.
package source
