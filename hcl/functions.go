package hcl

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// maxValueFile is the largest file that file() and a tls block read.
const maxValueFile = 1 << 20

// Functions are the functions of configuration files: those of
// ExpressionFunctions, where env() and file() work, and hostname(), the name of this
// machine up to the first dot. What the first two return is sensitive, and so is what
// is made of it. Relative names count from dir. The caller owns the map.
func Functions(dir string) map[string]function.Function {
	all := ExpressionFunctions()
	all["hostname"] = function.New(&function.Spec{Type: function.StaticReturnType(cty.String), Impl: hostnameFunction})
	all["env"] = textFunction(cty.String, markSensitive(readEnv))
	all["file"] = textFunction(cty.String, markSensitive(func(args []string) (string, error) { return readValue(dir, args) }))
	return all
}

// OfflineFunctions are Functions for looking at a configuration on another
// machine than the one that it is for: env() gives its default, or else a
// placeholder, and file() gives a placeholder, both sensitive, and neither looks
// at the environment or the disk. hostname() gives "hostname". The caller owns the map.
func OfflineFunctions() map[string]function.Function {
	all := ExpressionFunctions()
	all["env"] = textFunction(cty.String, markSensitive(func(args []string) (string, error) {
		if len(args) == 2 {
			return args[1], nil
		}
		return refuseOffline(args, "env(name) or env(name, default)")
	}))
	all["file"] = textFunction(cty.String, markSensitive(func(args []string) (string, error) { return refuseOffline(args, "file(name)") }))
	all["hostname"] = function.New(&function.Spec{
		Type: function.StaticReturnType(cty.String),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return cty.StringVal("hostname"), nil },
	})
	return all
}

func hostnameFunction([]cty.Value, cty.Type) (cty.Value, error) {
	name, err := os.Hostname()
	if err != nil {
		return cty.NilVal, fmt.Errorf("ask the machine for its name: %w", err)
	}
	name, _, _ = strings.Cut(name, ".")
	name, err = utf8Only("the name of this machine", name)
	return cty.StringVal(name), err
}

func refuseOffline(args []string, usage string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("expected " + usage)
	}
	return masked, nil
}

// ExpressionFunctions are the functions of expressions that are evaluated for
// each job. They are pure: the same arguments always give the same result. In
// their place env(), file() and hostname() are errors that say so; a Scope offers the
// first two as constants. The functions may be called concurrently. The caller owns the map.
func ExpressionFunctions() map[string]function.Function {
	all := map[string]function.Function{}
	for _, group := range []map[string]function.Function{collectionFunctions(), textFunctions(), numberFunctions(), conversionFunctions(), timeFunctions()} {
		maps.Copy(all, group)
	}
	for _, name := range []string{"env", "file", "hostname"} {
		all[name] = textFunction(cty.String, func([]string) (cty.Value, error) {
			return cty.NilVal, fmt.Errorf("%s() cannot be used here; this expression may only depend on its variables", name)
		})
	}
	return all
}

func collectionFunctions() map[string]function.Function {
	return map[string]function.Function{
		"chunklist":       stdlib.ChunklistFunc,
		"coalesce":        stdlib.CoalesceFunc,
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"flatten":         stdlib.FlattenFunc,
		"index":           stdlib.IndexFunc,
		"keys":            stdlib.KeysFunc,
		"length":          lengthFunction(),
		"lookup":          lookupFunction("lookup", "the map has no key %q", false, exactKey),
		"lookupprefix":    lookupFunction("lookupprefix", "%q begins with no key of the map", true, longestPrefix),
		"merge":           stdlib.MergeFunc,
		"range":           stdlib.RangeFunc,
		"reverse":         stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"values":          stdlib.ValuesFunc,
		"zipmap":          stdlib.ZipmapFunc,
	}
}

func textFunctions() map[string]function.Function {
	patterns := &patterns{}
	return map[string]function.Function{
		"base64decode":  textFunction(cty.String, decodeBase64, "text"),
		"base64encode":  textFunction(cty.String, encodeBase64, "text"),
		"chomp":         stdlib.ChompFunc,
		"csvdecode":     stdlib.CSVDecodeFunc,
		"endswith":      textPredicate(strings.HasSuffix),
		"format":        stdlib.FormatFunc,
		"formatlist":    stdlib.FormatListFunc,
		"join":          stdlib.JoinFunc,
		"jsonencode":    stdlib.JSONEncodeFunc,
		"jsondecode":    textFunction(cty.DynamicPseudoType, func(args []string) (cty.Value, error) { return decodeJSON(args[0]) }, "text"),
		"lower":         stdlib.LowerFunc,
		"regex":         regexFunction(patterns, func(t cty.Type) cty.Type { return t }, firstMatch),
		"regexall":      regexFunction(patterns, cty.List, allMatches),
		"regex_replace": textFunction(cty.String, patterns.replacePattern, "text", "pattern", "replacement"),
		"replace":       stdlib.ReplaceFunc,
		"sha256":        textFunction(cty.String, hexSHA256, "text"),
		"split":         stdlib.SplitFunc,
		"startswith":    textPredicate(strings.HasPrefix),
		"strlen":        stdlib.StrlenFunc,
		"strcontains":   textPredicate(strings.Contains),
		"substr":        stdlib.SubstrFunc,
		"title":         stdlib.TitleFunc,
		"trim":          stdlib.TrimFunc,
		"trimprefix":    stdlib.TrimPrefixFunc,
		"trimspace":     stdlib.TrimSpaceFunc,
		"trimsuffix":    stdlib.TrimSuffixFunc,
		"upper":         stdlib.UpperFunc,
	}
}

func numberFunctions() map[string]function.Function {
	return map[string]function.Function{
		"abs":      stdlib.AbsoluteFunc,
		"bytes":    bytesFunction(),
		"ceil":     stdlib.CeilFunc,
		"floor":    stdlib.FloorFunc,
		"log":      stdlib.LogFunc,
		"max":      stdlib.MaxFunc,
		"min":      stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc,
		"pow":      powFunction(),
		"round":    roundFunction(),
		"seconds":  secondsFunction(),
		"signum":   stdlib.SignumFunc,
		"sum":      sumFunction(),
	}
}

func conversionFunctions() map[string]function.Function {
	return map[string]function.Function{
		"can":      tryfunc.CanFunc,
		"try":      tryfunc.TryFunc,
		"tobool":   stdlib.MakeToFunc(cty.Bool),
		"tolist":   stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber": toNumberFunction(),
		"toset":    stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring": stdlib.MakeToFunc(cty.String),
	}
}

func timeFunctions() map[string]function.Function {
	return map[string]function.Function{
		"formatdate": stdlib.FormatDateFunc,
		"time":       timeFunction(),
		"timeadd":    stdlib.TimeAddFunc,
		"unix":       textFunction(cty.Number, unixSeconds, "time"),
	}
}

// markSensitive marks the text that f returns.
func markSensitive(f func([]string) (string, error)) func([]string) (cty.Value, error) {
	return func(args []string) (cty.Value, error) {
		out, err := f(args)
		return cty.StringVal(out).Mark(sensitive{}), err
	}
}

// textFunction is a function of texts with these names; without names, of any number of them.
func textFunction(result cty.Type, f func([]string) (cty.Value, error), names ...string) function.Function {
	spec := &function.Spec{Type: function.StaticReturnType(result)}
	for _, name := range names {
		spec.Params = append(spec.Params, function.Parameter{Name: name, Type: cty.String})
	}
	if len(names) == 0 {
		spec.VarParam = &function.Parameter{Name: "arguments", Type: cty.String}
	}
	spec.Impl = func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		in := make([]string, len(args))
		for i, a := range args {
			in[i] = a.AsString()
		}
		return f(in)
	}
	return function.New(spec)
}

// textPredicate is a function of two strings that gives a boolean.
func textPredicate(f func(a, b string) bool) function.Function {
	return textFunction(cty.Bool, func(args []string) (cty.Value, error) { return cty.BoolVal(f(args[0], args[1])), nil }, "text", "part")
}

// readEnv is env(name) and env(name, default).
func readEnv(args []string) (string, error) {
	if len(args) != 1 && len(args) != 2 {
		return "", errors.New("expected env(name) or env(name, default)")
	}
	if v, ok := os.LookupEnv(args[0]); ok {
		return utf8Only("the environment variable "+args[0], v)
	}
	if len(args) == 2 {
		return args[1], nil
	}
	return "", fmt.Errorf("the environment variable %s is not set; set it, or give a default: env(%q, \"…\")", clipText(args[0]), clipText(args[0]))
}

// readValue is file(name): the content of a text file without its last newline.
func readValue(dir string, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("expected file(name)")
	}
	name := args[0]
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	b, err := readFile(name, maxValueFile)
	if err != nil {
		return "", err
	}
	v, err := utf8Only(name, string(b))
	return strings.TrimSuffix(strings.TrimSuffix(v, "\n"), "\r"), err
}

func utf8Only(what, s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%s is not UTF-8 text", what)
	}
	return s, nil
}
