package hcl

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func hexSHA256(s string) (string, error) {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:]), nil
}

func encodeBase64(s string) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

func decodeBase64(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", errors.New("this is not base64")
	}
	return utf8Only("the decoded base64", string(b))
}

// maxPatterns is how many compiled patterns one set of functions keeps.
const maxPatterns = 1000

// patterns keeps compiled regular expressions. It is safe for concurrent use.
type patterns struct {
	compiled sync.Map // string → *regexp.Regexp
	count    atomic.Int64
}

func (p *patterns) get(pattern string) (*regexp.Regexp, error) {
	if re, ok := p.compiled.Load(pattern); ok {
		return re.(*regexp.Regexp), nil
	}
	re, err := CompilePattern(pattern)
	if err != nil {
		return nil, err
	}
	if p.count.Add(1) <= maxPatterns {
		p.compiled.Store(pattern, re)
	}
	return re, nil
}

// matchType is what a match of re gives: a string without groups, a list of the
// groups, or an object when all groups are named.
func matchType(re *regexp.Regexp) (cty.Type, error) {
	named := map[string]cty.Type{}
	names := re.SubexpNames()[1:]
	for _, n := range names {
		if n != "" {
			named[n] = cty.String
		}
	}
	switch {
	case len(names) == 0:
		return cty.String, nil
	case len(named) == 0:
		types := make([]cty.Type, len(names))
		for i := range types {
			types[i] = cty.String
		}
		return cty.Tuple(types), nil
	case len(named) < len(names):
		return cty.NilType, errors.New("invalid pattern: either all groups have a name, and each its own, or none")
	}
	return cty.Object(named), nil
}

// matchValue is the match that at describes; groups that took no part are null.
func matchValue(re *regexp.Regexp, text string, at []int) cty.Value {
	group := func(i int) cty.Value {
		if at[2*i] < 0 {
			return cty.NullVal(cty.String)
		}
		return cty.StringVal(text[at[2*i]:at[2*i+1]])
	}
	names := re.SubexpNames()
	switch {
	case len(names) == 1:
		return group(0)
	case names[1] == "":
		list := make([]cty.Value, len(names)-1)
		for i := range list {
			list[i] = group(i + 1)
		}
		return cty.TupleVal(list)
	}
	object := map[string]cty.Value{}
	for i, n := range names[1:] {
		object[n] = group(i + 1)
	}
	return cty.ObjectVal(object)
}

func regexParams() []function.Parameter {
	return []function.Parameter{{Name: "pattern", Type: cty.String}, {Name: "text", Type: cty.String}}
}

// regexType gives the result's type, which depends on the pattern.
func regexType(p *patterns, of func(cty.Type) cty.Type) function.TypeFunc {
	return func(args []cty.Value) (cty.Type, error) {
		if !args[0].IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		re, err := p.get(args[0].AsString())
		if err != nil {
			return cty.NilType, function.NewArgError(0, err)
		}
		t, err := matchType(re)
		if err != nil {
			return cty.NilType, function.NewArgError(0, err)
		}
		return of(t), nil
	}
}

func regexFunction(p *patterns) function.Function {
	return function.New(&function.Spec{
		Params: regexParams(),
		Type:   regexType(p, func(t cty.Type) cty.Type { return t }),
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			re, err := p.get(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			text := args[1].AsString()
			at := re.FindStringSubmatchIndex(text)
			if at == nil {
				return cty.NilVal, errors.New("the pattern did not match; use try(regex(…), …) where it may not")
			}
			return matchValue(re, text, at), nil
		},
	})
}

func regexAllFunction(p *patterns) function.Function {
	return function.New(&function.Spec{
		Params: regexParams(),
		Type:   regexType(p, cty.List),
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			re, err := p.get(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			text := args[1].AsString()
			var all []cty.Value
			for _, at := range re.FindAllStringSubmatchIndex(text, -1) {
				all = append(all, matchValue(re, text, at))
			}
			if len(all) == 0 {
				return cty.ListValEmpty(t.ElementType()), nil
			}
			return cty.ListVal(all), nil
		},
	})
}

// regexReplaceFunction replaces all matches; $1 and ${name} stand for groups.
func regexReplaceFunction(p *patterns) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "text", Type: cty.String}, {Name: "pattern", Type: cty.String}, {Name: "replacement", Type: cty.String},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			re, err := p.get(args[1].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			return cty.StringVal(re.ReplaceAllString(args[0].AsString(), args[2].AsString())), nil
		},
	})
}
