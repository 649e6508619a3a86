package cluster

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
)

// Node is what a node has.
type Node struct {
	Name       string
	Cores      int64                       // CPUs as Slurm counts them: those that AllocCPUS counts
	MemoryMB   int64                       // in units of 2^20 bytes
	GPUs       map[string]int64            // by model; "" where Slurm is told none
	Shares     map[string]map[string]int64 // of its GPUs, by resource (shard, mps) and model; "" for those of all models
	Partitions []string
}

// ReadNodes reads what scontrol -o show nodes prints. Nodes that are FUTURE are
// not there yet and are left out. No node at all is an error.
func ReadNodes(r io.Reader) ([]Node, error) {
	var nodes []Node
	err := eachLine(r, func(line string) error {
		if !strings.HasPrefix(line, "NodeName=") {
			return nil // the name of a cluster, or what a wrapper prints
		}
		words := lineAttributes(line)
		if isFutureNode(words["State"]) {
			return nil
		}
		n, err := parseNode(words)
		if err != nil {
			return fmt.Errorf("node %s: %w", words["NodeName"], err)
		}
		nodes = append(nodes, n)
		return nil
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("there is no node in the output")
	}
	return nodes, err
}

// lineAttributes are the words key=value of a line. The first one of a key counts:
// what people write, as Reason and Comment, comes last.
func lineAttributes(line string) map[string]string {
	words := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, found := strings.Cut(word, "=")
		if _, known := words[key]; found && !known {
			words[key] = value
		}
	}
	return words
}

// isFutureNode reports whether a state such as DOWN*+DRAIN says that the node is not
// there yet.
func isFutureNode(state string) bool {
	for flag := range strings.SplitSeq(state, "+") {
		if strings.TrimRight(flag, "*~#!%$@^-") == "FUTURE" {
			return true
		}
	}
	return false
}

func parseNode(words map[string]string) (Node, error) {
	n := Node{Name: words["NodeName"]}
	var err error
	if n.Cores, err = parseNumber(words, "CPUTot"); err != nil {
		return n, err
	}
	if n.MemoryMB, err = parseNumber(words, "RealMemory"); err != nil {
		return n, err
	}
	if n.GPUs, err = parseGres(words["Gres"], "gpu"); err != nil {
		return n, err
	}
	for _, resource := range job.Shared() {
		shares, err := parseGres(words["Gres"], resource)
		if err != nil {
			return n, err
		}
		if len(shares) > 0 {
			if n.Shares == nil {
				n.Shares = map[string]map[string]int64{}
			}
			n.Shares[resource] = shares
		}
	}
	if p := words["Partitions"]; p != "" && p != null {
		n.Partitions = strings.Split(p, ",")
	}
	return n, nil
}

const null = "(null)"

func parseNumber(words map[string]string, key string) (int64, error) {
	n, known, err := field.Count(words[key])
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", key, err)
	case !known:
		return 0, fmt.Errorf("it has no %s", key)
	case n < 0 || n > maxAmount:
		return 0, fmt.Errorf("%s: %d cannot be", key, n)
	}
	return n, nil
}

// maxAmount of anything that a node has; sums over all nodes stay far from the
// limits of int64.
const maxAmount = 1 << 40

// parseGres reads one resource of a list such as gpu:a100:4(S:0-1),gpu:2,shard:16, by model.
func parseGres(gres, resource string) (map[string]int64, error) {
	var out map[string]int64
	for _, part := range splitItems(gres) {
		kind, rest, _ := strings.Cut(part, ":")
		if kind != resource {
			continue
		}
		model, n, err := parseCounted(rest)
		if err != nil {
			return nil, fmt.Errorf("%s of %q: %w", resource, gres, err)
		}
		if out == nil {
			out = map[string]int64{}
		}
		if out[model] += n; out[model] > maxAmount {
			return nil, fmt.Errorf("%q: %d of %s cannot be", gres, out[model], resource)
		}
	}
	return out, nil
}

// splitItems are the items of a list with commas, of which those in parentheses do not
// count, without what is in parentheses.
func splitItems(list string) []string {
	var out []string
	var item strings.Builder
	depth := 0
	for _, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth = max(0, depth-1)
		case depth > 0:
		case r == ',':
			out = append(out, item.String())
			item.Reset()
		default:
			item.WriteRune(r)
		}
	}
	return append(out, item.String())
}

// parseCounted reads a100:4, 4, a100, a100:no_consume:4 or nothing, which is one.
func parseCounted(s string) (model string, n int64, err error) {
	words := slices.DeleteFunc(strings.Split(s, ":"), func(w string) bool { return w == "" || w == "no_consume" })
	if len(words) == 0 {
		return "", 1, nil
	}
	n, known, err := field.Size(words[len(words)-1])
	switch {
	case err != nil && len(words) == 1:
		return words[0], 1, nil
	case err != nil:
		return "", 0, err
	case !known || n > maxAmount:
		return "", 0, fmt.Errorf("%q is not a number", words[len(words)-1])
	case len(words) == 1:
		return "", n, nil
	}
	return words[0], n, nil
}
