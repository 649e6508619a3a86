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
// ExpressionFunctions, where env() and file() work. What these two return is
// sensitive, and so is what is made of it. Relative names count from dir. The
// caller owns the map.
func Functions(dir string) map[string]function.Function {
	all := ExpressionFunctions()
	all["env"] = textFunction(markSensitive, readEnv)
	all["file"] = textFunction(markSensitive, func(args []string) (string, error) { return readValue(dir, args) })
	return all
}

// OfflineFunctions are Functions for looking at a configuration on another
// machine than the one that it is for: env() gives its default, or else a
// placeholder, and file() gives a placeholder, both sensitive, and neither looks
// at the environment or the disk. The caller owns the map.
func OfflineFunctions() map[string]function.Function {
	all := ExpressionFunctions()
	all["env"] = textFunction(markSensitive, func(args []string) (string, error) {
		if len(args) == 2 {
			return args[1], nil
		}
		return offline(args, "env(name) or env(name, default)")
	})
	all["file"] = textFunction(markSensitive, func(args []string) (string, error) { return offline(args, "file(name)") })
	return all
}

func offline(args []string, usage string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("expected " + usage)
	}
	return masked, nil
}

// ExpressionFunctions are the functions of expressions that are evaluated for
// each job. They are pure: the same arguments always give the same result. In
// their place env() and file() are errors that say so; a Scope offers them as
// constants. The functions may be called concurrently. The caller owns the map.
func ExpressionFunctions() map[string]function.Function {
	all := map[string]function.Function{}
	for _, group := range []map[string]function.Function{collections(), texts(), numbers(), conversions(), moments()} {
		maps.Copy(all, group)
	}
	for _, name := range []string{"env", "file"} {
		all[name] = textFunction(keep, func([]string) (string, error) {
			return "", fmt.Errorf("%s() cannot be used here; this expression may only depend on its variables", name)
		})
	}
	return all
}

func collections() map[string]function.Function {
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
		"lookup":          lookupFunction(),
		"lookupprefix":    lookupPrefixFunction(),
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

func texts() map[string]function.Function {
	patterns := &patterns{}
	return map[string]function.Function{
		"base64decode":  text(decodeBase64),
		"base64encode":  text(encodeBase64),
		"chomp":         stdlib.ChompFunc,
		"csvdecode":     stdlib.CSVDecodeFunc,
		"endswith":      predicate(strings.HasSuffix),
		"format":        stdlib.FormatFunc,
		"formatlist":    stdlib.FormatListFunc,
		"join":          stdlib.JoinFunc,
		"jsonencode":    stdlib.JSONEncodeFunc,
		"jsondecode":    jsonDecodeFunction(),
		"lower":         stdlib.LowerFunc,
		"regex":         regexFunction(patterns),
		"regexall":      regexAllFunction(patterns),
		"regex_replace": regexReplaceFunction(patterns),
		"replace":       stdlib.ReplaceFunc,
		"sha256":        text(hexSHA256),
		"split":         stdlib.SplitFunc,
		"startswith":    predicate(strings.HasPrefix),
		"strlen":        stdlib.StrlenFunc,
		"strcontains":   predicate(strings.Contains),
		"substr":        stdlib.SubstrFunc,
		"title":         stdlib.TitleFunc,
		"trim":          stdlib.TrimFunc,
		"trimprefix":    stdlib.TrimPrefixFunc,
		"trimspace":     stdlib.TrimSpaceFunc,
		"trimsuffix":    stdlib.TrimSuffixFunc,
		"upper":         stdlib.UpperFunc,
	}
}

func numbers() map[string]function.Function {
	return map[string]function.Function{
		"abs":      stdlib.AbsoluteFunc,
		"bytes":    bytesFunction(),
		"ceil":     rounding(ceil),
		"floor":    rounding(floor),
		"log":      stdlib.LogFunc,
		"max":      stdlib.MaxFunc,
		"min":      stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc,
		"pow":      powFunction(),
		"round":    rounding(round),
		"seconds":  secondsFunction(),
		"signum":   stdlib.SignumFunc,
		"sum":      sumFunction(),
	}
}

func conversions() map[string]function.Function {
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

func moments() map[string]function.Function {
	return map[string]function.Function{
		"formatdate": stdlib.FormatDateFunc,
		"time":       timeFunction(),
		"timeadd":    stdlib.TimeAddFunc,
		"unix":       unixFunction(),
	}
}

func keep(v cty.Value) cty.Value { return v }

func markSensitive(v cty.Value) cty.Value { return v.Mark(sensitive{}) }

// textFunction is a function of any number of strings that gives a string.
func textFunction(wrap func(cty.Value) cty.Value, f func([]string) (string, error)) function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "arguments", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			in := make([]string, len(args))
			for i, a := range args {
				in[i] = a.AsString()
			}
			out, err := f(in)
			if err != nil {
				return cty.NilVal, err
			}
			return wrap(cty.StringVal(out)), nil
		},
	})
}

// text is a function of one string that gives a string.
func text(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := f(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(out), nil
		},
	})
}

// predicate is a function of two strings that gives a boolean.
func predicate(f func(a, b string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
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
	return "", fmt.Errorf("the environment variable %s is not set; set it, or give a default: env(%q, \"…\")", clip(args[0]), clip(args[0]))
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
		return "", errors.New(fileError(err))
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
