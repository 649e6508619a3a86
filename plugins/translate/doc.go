// Package translate makes frames of what a source plugin sends: records of jobs by the mapping,
// withdrawals, what goes to quarantine with the raw input, frames that a source made itself, and
// findings. The agent collects with it, and `bursar import` reads old files with it.
//
// Whatever a source says is bounded and checked here, and what cannot be a record is in quarantine
// or counted: nothing vanishes.
package translate
