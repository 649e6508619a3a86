// Package job makes runs of jobs from HTCondor's ads: what the run is called, when it
// began and ended, how, and the attributes that a mapping can name.
package job
