package clusterconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is one thing that the files of a node and the cluster's
// configuration do not agree in.
type Difference struct {
	// Block is the name of the block, such as agent "head1".
	Block string
	// At is where the files say it, as file:line; "" when only the cluster does.
	At string
	// Text says what differs, for people.
	Text string
}

// String is one line for people.
func (d Difference) String() string {
	line := d.Block + " " + d.Text
	if d.At == "" {
		return line
	}
	return d.At + ": " + line
}

// Diff returns where files and cluster differ, in the order of their blocks. A
// nil cluster has nothing.
func Diff(files, cluster *Document) []Difference {
	if cluster == nil {
		cluster = &Document{}
	}
	return diffBlocks(files.Blocks, cluster.Blocks, "")
}

// diffBlocks compares blocks that stand in the block of that name. Blocks within
// a block may stand in any order, and that order counts only where nothing else
// differs.
func diffBlocks(files, cluster []Block, within string) (list []Difference) {
	files, cluster = sorted(files), sorted(cluster)
	i, k := 0, 0
	for i < len(files) || k < len(cluster) {
		switch c := order(files[i:], cluster[k:]); {
		case c < 0:
			b := &files[i]
			list = append(list, Difference{within + b.Name(), b.At, "stands in these files only: " + b.summary()})
			i++
		case c > 0:
			b := &cluster[k]
			list = append(list, Difference{within + b.Name(), "", "stands in the cluster's configuration only: " + b.summary()})
			k++
		default:
			list = append(list, diffBlock(&files[i], &cluster[k], within)...)
			i, k = i+1, k+1
		}
	}
	return list
}

func sorted(blocks []Block) []Block {
	return slices.SortedStableFunc(slices.Values(blocks), func(a, b Block) int { return a.compare(&b) })
}

func order(files, cluster []Block) int {
	switch {
	case len(files) == 0:
		return 1
	case len(cluster) == 0:
		return -1
	}
	return files[0].compare(&cluster[0])
}

func diffBlock(here, there *Block, within string) (list []Difference) {
	names := map[string]bool{}
	for name := range here.Values {
		names[name] = true
	}
	for name := range there.Values {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := here.Values[name], there.Values[name]
		if string(a) == string(b) {
			continue
		}
		at := here.Places[name]
		if at == "" {
			at = here.At
		}
		list = append(list, Difference{within + here.Name(), at, fmt.Sprintf("has %s = %s in these files and %s in the cluster", name, written(a), written(b))})
	}
	inner := diffBlocks(here.Blocks, there.Blocks, within+here.Name()+" ")
	if len(inner) == 0 && !slices.EqualFunc(here.Blocks, there.Blocks, func(a, b Block) bool { return a.compare(&b) == 0 }) {
		inner = []Difference{{within + here.Name(), here.At, "has its blocks in another order than in the cluster"}}
	}
	return append(list, inner...)
}

// maxWritten bounds what is shown of a value.
const maxWritten = 400

// written is a value as it would stand in a file.
func written(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		text = fmt.Sprintf("%q", text)
	} else {
		text = string(raw)
	}
	if len(text) <= maxWritten {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxWritten], ""), len(text))
}

// summary says what stands in a block, in one line.
func (b *Block) summary() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.Values)) {
		parts = append(parts, name+" = "+written(b.Values[name]))
	}
	for i := range b.Blocks {
		parts = append(parts, b.Blocks[i].Name()+" { "+b.Blocks[i].summary()+" }")
	}
	if len(parts) == 0 {
		return "empty"
	}
	return strings.Join(parts, ", ")
}
