package grid

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Consumables returns for each of the hosts how much it has of a resource that jobs consume:
// of the first of names that its complex_values have. It asks for no host where none of names
// is a consumable.
func (c *Client) Consumables(ctx context.Context, names, hosts []string) (map[string]int64, error) {
	out := map[string]int64{}
	if len(names) == 0 {
		return out, nil
	}
	var known []string
	qconf := filepath.Join(c.Dir, "qconf")
	if err := c.runTool(ctx, "qconf", qconf, func(r io.Reader) (err error) {
		known, err = readConsumables(r)
		return err
	}, "-sc"); err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(known, name) })
	if len(names) == 0 {
		return out, nil
	}
	for _, host := range hosts {
		var values map[string]string
		err := c.runTool(ctx, "qconf", qconf, func(r io.Reader) (err error) {
			values, err = readComplexValues(r)
			return err
		}, "-se", host)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", host, err)
		}
		for _, name := range names {
			text, has := values[name]
			if !has {
				continue
			}
			if out[host], err = parseCount(text); err != nil {
				return nil, fmt.Errorf("host %s: %s: %w", host, name, err)
			}
			break
		}
	}
	return out, nil
}

// readConsumables reads what qconf -sc prints: the complexes that jobs consume.
func readConsumables(r io.Reader) (names []string, err error) {
	const consumable = 5 // name, shortcut, type, relop, requestable, consumable, default, urgency
	whole := false
	err = eachLine(r, func(line string) {
		fields := strings.Fields(line)
		if len(fields) <= consumable+2 || strings.HasPrefix(line, "#") {
			return
		}
		whole = true
		if slices.Contains([]string{"YES", "JOB", "HOST"}, strings.ToUpper(fields[consumable])) {
			names = append(names, fields[0])
		}
	})
	if err == nil && !whole {
		err = errors.New("there is no complex in the output")
	}
	return names, err
}

// readComplexValues reads of what qconf -se prints the complex_values, numbers without what
// follows in brackets, where the instances of a resource map are.
func readComplexValues(r io.Reader) (values map[string]string, err error) {
	err = eachLine(r, func(line string) {
		list, ok := strings.CutPrefix(line, "complex_values")
		if !ok || values != nil {
			return
		}
		values = map[string]string{}
		for _, item := range splitOutside(list) {
			name, text, _ := strings.Cut(strings.TrimSpace(item), "=")
			text, _, _ = strings.Cut(text, "(")
			if whole, zeros, cut := strings.Cut(text, "."); cut && strings.Trim(zeros, "0") == "" {
				text = whole
			}
			values[name] = strings.TrimSpace(text)
		}
	})
	if err == nil && values == nil {
		err = errors.New("there are no complex_values in the output")
	}
	return values, err
}

// splitOutside splits a list at the commas outside of brackets.
func splitOutside(list string) (items []string) {
	depth, begin := 0, 0
	for i, c := range list {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				items, begin = append(items, list[begin:i]), i+1
			}
		}
	}
	return append(items, list[begin:])
}

// eachLine calls use for each line; a backslash at the end of one continues it.
func eachLine(r io.Reader, use func(string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	whole := ""
	for lines.Scan() {
		part, more := strings.CutSuffix(lines.Text(), `\`)
		if whole += part; more {
			continue
		}
		use(whole)
		whole = ""
	}
	return lines.Err()
}
