package program

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/deliver"
)

// settings are what the file and the flags say.
type settings struct {
	deliver.Target

	spool   string
	timeout time.Duration

	config              string
	drain, check, about bool
}

const (
	defaultConfig  = "/etc/bursar/epilog.hcl"
	defaultSocket  = "/run/bursar-agent/epilog.sock"
	defaultSpool   = "/var/spool/bursar-epilog"
	defaultTimeout = 2 * time.Second
)

// flagSet is a flag set of all settings; those with file true may stand in the file too.
func (s *settings) flagSet(out io.Writer) (all *flag.FlagSet, inFile func(name string) bool) {
	f := flag.NewFlagSet("bursar-epilog", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&s.Socket, "socket", defaultSocket, "unix `socket` of the agent's plugin, on the agent's machine")
	f.StringVar(&s.Address, "address", "", "`host:port` of the agent's plugin, from other machines; instead of the socket")
	f.StringVar(&s.Agent, "agent", "", "`name` in the agent's certificate; without it that of any agent will do")
	f.StringVar(&s.Files.CA, "ca", "/etc/bursar/tls/ca.pem", "`file` with the certificates of the authorities, for -address")
	f.StringVar(&s.Files.Cert, "cert", "/etc/bursar/tls/epilog.pem", "`file` with this machine's certificate, for -address")
	f.StringVar(&s.Files.Key, "key", "/etc/bursar/tls/epilog.key", "`file` with its key, for -address")
	f.StringVar(&s.spool, "spool", defaultSpool, "`folder` for what cannot be handed over now")
	f.DurationVar(&s.timeout, "timeout", defaultTimeout, "`time` after which Slurm gets its answer at the latest")
	file := map[string]bool{}
	f.VisitAll(func(f *flag.Flag) { file[f.Name] = true })
	f.StringVar(&s.config, "config", defaultConfig, "`file` with settings: name = \"value\" of each flag above, a line each; need not be there")
	f.BoolVar(&s.drain, "drain", false, "hand over what is in the spool, instead of a job; for a timer")
	f.BoolVar(&s.check, "check", false, "say whether the agent answers and the spool can be written, and how many wait")
	f.BoolVar(&s.about, "version", false, "print the version")
	f.Usage = func() { printUsage(f) }
	return f, func(name string) bool { return file[name] }
}

func printUsage(f *flag.FlagSet) {
	fmt.Fprint(f.Output(), `Usage: bursar-epilog [flags]

Report the end of a run of a job to bursar's agent. Slurm calls it, in slurm.conf:

  Epilog=/usr/bin/bursar-epilog             # on every node, or
  EpilogSlurmctld=/usr/bin/bursar-epilog    # where slurmctld runs

or from a script that does more. It returns within milliseconds, after the agent has
the job on disk; with the agent away the job waits in the spool. Its exit status is
0 whatever happens.

Example, by hand, for a job that has ended:

  SLURM_JOB_ID=4711 bursar-epilog -socket /run/bursar-agent/epilog.sock

Example of /etc/bursar/epilog.hcl on a compute node:

  address = "head1.example.org:7071"
  cert    = "/etc/bursar/tls/epilog.pem"
  key     = "/etc/bursar/tls/epilog.key"

Flags:
`)
	f.PrintDefaults()
}

// readSettings reads the command line and the file, which the command line overrides. What
// is wrong with the file is the second error: what could be read of it counts.
func readSettings(args []string, out io.Writer) (s *settings, usage, config error) {
	s = &settings{}
	f, inFile := s.flagSet(out)
	if err := f.Parse(args); err != nil {
		return nil, err, nil
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0)), nil
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	text, err := os.ReadFile(s.config)
	if errors.Is(err, fs.ErrNotExist) && !given["config"] {
		return s, nil, s.fixTimeout()
	}
	if err != nil {
		return s, nil, errors.Join(err, s.fixTimeout())
	}
	values, problems := parseFile(s.config, text)
	for _, v := range values {
		switch {
		case !inFile(v.name):
			problems = append(problems, fmt.Errorf("%s: %q is not a setting; see bursar-epilog -h", v.place, v.name))
		case given[v.name]:
		default:
			if err := f.Set(v.name, v.text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", v.place, v.name, err))
			}
		}
	}
	return s, nil, errors.Join(append(problems, s.fixTimeout())...)
}

const (
	leastTimeout = 10 * time.Millisecond
	mostTimeout  = time.Minute
)

// fixTimeout replaces a timeout that is out of range by the default, and says so.
func (s *settings) fixTimeout() error {
	if s.timeout >= leastTimeout && s.timeout <= mostTimeout {
		return nil
	}
	bad := s.timeout
	s.timeout = defaultTimeout
	return fmt.Errorf("timeout: %s is out of range, %s is used; allowed is %s to %s", bad, defaultTimeout, leastTimeout, mostTimeout)
}

// value is a line of the file.
type value struct{ name, text, place string }

// parseFile reads the file: HCL with one attribute a line, whose value is a text. That
// much of the language needs no library, which would take longer to load than all
// the rest of this program.
func parseFile(path string, text []byte) (values []value, problems []error) {
	in := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; in.Scan(); number++ {
		place := fmt.Sprintf("%s:%d", path, number)
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "//") {
			continue
		}
		name, rest, found := strings.Cut(line, "=")
		quoted, err := strconv.QuotedPrefix(strings.TrimSpace(rest))
		if !found || err != nil || quoted[0] != '"' {
			problems = append(problems, fmt.Errorf("%s: want name = \"value\", found %.80q", place, line))
			continue
		}
		behind := strings.TrimSpace(strings.TrimSpace(rest)[len(quoted):])
		unquoted, err := strconv.Unquote(quoted)
		if err != nil || behind != "" && behind[0] != '#' && !strings.HasPrefix(behind, "//") {
			problems = append(problems, fmt.Errorf("%s: want nothing behind the value but a comment, found %.80q", place, behind))
			continue
		}
		values = append(values, value{strings.TrimSpace(name), unquoted, place})
	}
	if err := in.Err(); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", path, err))
	}
	return values, problems
}
