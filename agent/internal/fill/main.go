// Command fill prepares and measures for `make bench` what only the agent's
// packages can: it fills a buffer with the benchmark record, and times the
// mapping.
//
//	fill buffer -path FILE -n N -ids slurm|uuid [-sample FILE] [-site NAME] [-years N]
//	fill mapping [-time 1s]
//
// It writes JSON values on lines to stdout: any number of [Report] whose Done is
// false, then one whose Done is true.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// Report is one line of the output.
type Report struct {
	Done    bool    `json:"done"`
	Frames  int     `json:"frames,omitempty"`  // in the buffer so far
	Bytes   int64   `json:"bytes,omitempty"`   // of the buffer's file
	Rate    float64 `json:"rate,omitempty"`    // jobs per second
	Allocs  int64   `json:"allocs,omitempty"`  // per job
	Seconds float64 `json:"seconds,omitempty"` // that it took
}

func main() {
	if err := runCommand(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func runCommand(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want buffer or mapping")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "buffer":
		var f filling
		flags.StringVar(&f.path, "path", "", "`file` of the buffer, which must not exist")
		flags.IntVar(&f.n, "n", 1_000_000, "how many records")
		flags.StringVar(&f.ids, "ids", "slurm", "slurm or uuid")
		flags.Uint64Var(&f.seed, "seed", 1, "what the records depend on")
		flags.StringVar(&f.site, "site", "", "`name` of the one site that all records are of, in place of five")
		flags.IntVar(&f.years, "years", 1, "over how many years the records are spread")
		flags.StringVar(&f.sample, "sample", "", "`file` for some of the ids, one a line")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return f.fillBuffer()
	case "mapping":
		took := flags.Duration("time", time.Second, "how long to measure")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return timeMapping(*took)
	}
	return fmt.Errorf("%q is neither buffer nor mapping", args[0])
}

// writeReport writes one line of the output.
func writeReport(r Report) error { return json.NewEncoder(os.Stdout).Encode(r) }
