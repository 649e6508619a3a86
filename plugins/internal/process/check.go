package process

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Value is a regular expression of what may be filled in: it can be no option, no path
// and no list.
const Value = `[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}`

// kind says what a program does with its arguments and its input.
type kind int

const (
	plain       kind = iota
	shell            // runs what an argument or its input says
	interpreter      // as shell, but for a script that its first argument names
	launcher         // runs the program that its arguments name
	setter           // as launcher, behind variables and nothing else
)

// release is what may stand behind the name of a program.
var release = regexp.MustCompile(`[-.0-9]+$`)

// programKinds are the programs that run programs, by their names without a release.
func programKinds() map[string]kind {
	out := map[string]kind{}
	for k, names := range map[kind]string{
		shell:       "sh bash rbash dash ash zsh ksh mksh pdksh yash csh tcsh fish",
		interpreter: "python pypy perl ruby node nodejs lua luajit php tclsh wish expect awk gawk mawk nawk osascript pwsh",
		setter:      "env",
		launcher: `busybox toybox eval xargs sudo sudoedit su runuser doas pkexec setpriv capsh chroot unshare nsenter newgrp sg gosu
			nice ionice chrt taskset numactl prlimit timeout nohup setsid stdbuf time watch unbuffer script
			systemd-run systemd-inhibit busctl dbus-run-session dbus-launch run-parts start-stop-daemon daemonize chpst
			flock parallel find fd make gmake ninja at batch crontab entr inotifywait
			ssh sshpass slogin rsync scp sftp pdsh clush ansible mpirun mpiexec srun salloc sbatch qrsh qsub condor_run
			docker podman nerdctl runc crun ctr kubectl machinectl lxc-attach lxc apptainer singularity firejail bwrap nomad
			strace ltrace gdb gdbserver perf valgrind ld.so ld-linux ld-linux-x86-64.so linux32 linux64 setarch x86_64
			vi vim view ex ed emacs nano less more man pager git hg svn tar zip cpio sed m4 dc bc tmux screen socat nc ncat
			openssl curl wget logrotate exec command builtin`,
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = k
		}
	}
	return out
}

// kindOf returns the kind of a program by its path or its name.
func kindOf(known map[string]kind, word string) kind {
	base := filepath.Base(word)
	if k := known[base]; k != plain {
		return k
	}
	return known[release.ReplaceAllString(base, "")]
}

// Check returns why a command, a program with its arguments, cannot be allowed, and at
// which word; "": it can. Open reports of a word that a part of it is filled in later, and
// input is true when standard input comes from elsewhere. The first word is the absolute
// path of a program, which is not open. Neither open words nor input may choose what a
// program that runs programs is to run:
//
//   - Nothing is open behind a launcher, such as sudo, nice, find or systemd-run, but for
//     the arguments of a program that stands behind env and variables.
//   - The first argument of a shell or another interpreter, such as python, is the
//     absolute path of a script, which is not open; what is behind it is for the script.
//     Without open words and such input it may be anything.
func Check(words []string, open func(i int) bool, input bool) (at int, why string) {
	if at, why := whyUnfit(words, open); why != "" {
		return at, why
	}
	known, behind := programKinds(), ""
	anyOpen := slices.ContainsFunc(allIndices(words), open)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if behind != "" && open(i) {
			return i, fmt.Sprintf("%q stands behind %s, which runs the program that its arguments name: write it out, or name a script that does the whole", word, behind)
		}
		k := kindOf(known, word)
		named := i == 0 || behind != "" || filepath.IsAbs(word)
		switch {
		case k == plain, k == interpreter && !named:
		case k == launcher, k == setter:
			if named {
				behind = filepath.Base(word)
			}
			if n := countAssignments(words[i+1:]); k == setter && i == 0 && len(words) > n+1 && filepath.IsAbs(words[n+1]) && !slices.ContainsFunc(allIndices(words[:n+2]), open) {
				behind = ""
				i = n // the next word is that of the program
			}
		case i+1 < len(words) && filepath.IsAbs(words[i+1]) && !open(i+1):
			return -1, "" // what is behind is for the script
		case k == shell && (anyOpen || input):
			return i, fmt.Sprintf("%q is a shell: with it an action could run anything. Name the program itself; a script that begins with #! is one", word)
		case anyOpen || input:
			return i, fmt.Sprintf("%q runs any program: with it an action could run anything. Its first argument has to be the absolute path of a script, written out", word)
		}
	}
	return -1, ""
}

// whyUnfit is Check without regard to what the program does.
func whyUnfit(words []string, open func(i int) bool) (at int, why string) {
	switch {
	case len(words) == 0:
		return 0, "empty command; the first element is the path of the program"
	case open(0):
		return 0, fmt.Sprintf("%q leaves open which program it is; write it out", words[0])
	case !filepath.IsAbs(words[0]) || filepath.Clean(words[0]) != words[0]:
		return 0, fmt.Sprintf("%q is not the absolute path of a program; there is no shell and no search for programs", words[0])
	}
	if at = slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "\x00") }); at >= 0 {
		return at, fmt.Sprintf("%q has a zero byte", words[at])
	}
	return -1, ""
}

// countAssignments is how many words set variables.
func countAssignments(words []string) int {
	n := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") || !strings.Contains(w, "=") })
	if n < 0 {
		return len(words)
	}
	return n
}

func allIndices(words []string) []int {
	out := make([]int, len(words))
	for i := range out {
		out[i] = i
	}
	return out
}

// Script returns the script that an interpreter which a command names is given; "" where
// there is none.
func Script(words []string) string {
	known := programKinds()
	for i, word := range words[:max(0, len(words)-1)] {
		if k := kindOf(known, word); (k == shell || k == interpreter) && (i == 0 || filepath.IsAbs(word)) && filepath.IsAbs(words[i+1]) {
			return words[i+1]
		}
	}
	return ""
}
