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

func hexSHA256(args []string) (cty.Value, error) {
	sum := sha256.Sum256([]byte(args[0]))
	return cty.StringVal(hex.EncodeToString(sum[:])), nil
}

func encodeBase64(args []string) (cty.Value, error) {
	return cty.StringVal(base64.StdEncoding.EncodeToString([]byte(args[0]))), nil
}

func decodeBase64(args []string) (cty.Value, error) {
	b, err := base64.StdEncoding.DecodeString(args[0])
	if err != nil {
		return cty.NilVal, errors.New("this is not base64")
	}
	text, err := utf8Only("the decoded base64", string(b))
	return cty.StringVal(text), err
}

// maxPatterns is how many compiled patterns one set of functions keeps.
const maxPatterns = 1000

// patterns keeps compiled regular expressions. It is safe for concurrent use.
type patterns struct {
	compiled sync.Map // string → *regexp.Regexp
	count    atomic.Int64
}

func (p *patterns) getPattern(pattern string) (*regexp.Regexp, error) {
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

// regexFunction is a function of a pattern and a text. The type of its result depends on
// that of a match, and so on the pattern.
func regexFunction(p *patterns, of func(cty.Type) cty.Type, find func(re *regexp.Regexp, text string, t cty.Type) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "pattern", Type: cty.String}, {Name: "text", Type: cty.String}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[0].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			re, err := p.getPattern(args[0].AsString())
			if err != nil {
				return cty.NilType, function.NewArgError(0, err)
			}
			t, err := matchType(re)
			if err != nil {
				return cty.NilType, function.NewArgError(0, err)
			}
			return of(t), nil
		},
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			re, err := p.getPattern(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			return find(re, args[1].AsString(), t)
		},
	})
}

func firstMatch(re *regexp.Regexp, text string, _ cty.Type) (cty.Value, error) {
	at := re.FindStringSubmatchIndex(text)
	if at == nil {
		return cty.NilVal, errors.New("the pattern did not match; use try(regex(…), …) where it may not")
	}
	return matchValue(re, text, at), nil
}

func allMatches(re *regexp.Regexp, text string, t cty.Type) (cty.Value, error) {
	var all []cty.Value
	for _, at := range re.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, matchValue(re, text, at))
	}
	if len(all) == 0 {
		return cty.ListValEmpty(t.ElementType()), nil
	}
	return cty.ListVal(all), nil
}

// replacePattern is regex_replace(text, pattern, replacement): $1 and ${name} stand for groups.
func (p *patterns) replacePattern(args []string) (cty.Value, error) {
	re, err := p.getPattern(args[1])
	if err != nil {
		return cty.NilVal, function.NewArgError(1, err)
	}
	return cty.StringVal(re.ReplaceAllString(args[0], args[2])), nil
}
