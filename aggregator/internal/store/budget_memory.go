package store

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// leastAnswers and mostAnswers bound what answers get of a machine's memory, of
	// which they get a share of one in answerShare.
	leastAnswers = 64 << 20
	mostAnswers  = 1 << 30
	answerShare  = 8
	// softShare is how much in a hundred of its control group's memory the process
	// takes before it collects garbage more eagerly.
	softShare = 85
)

// ProcessMemory returns how many bytes this process may take: the least of the machine's
// memory, of the bounds of its control group and those above it, and of GOMEMLIMIT.
// Group says that a control group is the reason. root is the file system from its root
// on. Zero: none of them could be found out.
func ProcessMemory(root fs.FS) (bytes int64, group bool) {
	bytes = math.MaxInt64
	if n := machineMemory(root); n > 0 {
		bytes = n
	}
	if n := controlGroup(root); n > 0 && n < bytes {
		bytes, group = n, true
	}
	if n := debug.SetMemoryLimit(-1); n > 0 && n < bytes {
		bytes, group = n, false
	}
	if bytes == math.MaxInt64 {
		return 0, false
	}
	return bytes, group
}

// AnswerMemory is how much of a process' memory answers may take together.
func AnswerMemory(bytes int64) int64 {
	if bytes <= 0 {
		return mostAnswers
	}
	return min(max(bytes/answerShare, leastAnswers), mostAnswers)
}

// HeedGroup makes the process collect garbage before it meets the bound of its control
// group, unless GOMEMLIMIT says something lower already.
func HeedGroup(bytes int64, group bool) {
	if group {
		debug.SetMemoryLimit(bytes / 100 * softShare)
	}
}

// machineMemory is the memory of the machine.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil && n < math.MaxInt64>>10 {
				return n << 10
			}
		}
	}
	return 0
}

// controlGroup is the least bound of the process' control group and those above it, of
// either version; 0 without one.
func controlGroup(root fs.FS) (least int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		top, names := "", []string(nil)
		switch {
		case parts[0] == "0" && parts[1] == "":
			top, names = "sys/fs/cgroup", []string{"memory.max", "memory.high"}
		case hasWord(parts[1], "memory"):
			top, names = "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		default:
			continue
		}
		for dir := path.Join("/", parts[2]); ; dir = path.Dir(dir) {
			for _, name := range names {
				if n := readByteLimit(root, path.Join(top, dir, name)); n > 0 && (least == 0 || n < least) {
					least = n
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// readByteLimit reads a number of bytes; 0 for none.
func readByteLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // such as max
		return 0
	}
	return n
}
