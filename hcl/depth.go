package hcl

import (
	"bytes"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Limits that keep the recursive parser from exhausting the stack, far beyond
// what a person writes.
const (
	maxNesting   = 200
	maxOperators = 2000
	maxHeredocs  = 2000 // the lexer is quadratic in the heredocs that are left open
)

// level is an open bracket, quote or block: whether it is a brace, in which a
// newline ends an expression, and the operators since the last separator.
type level struct {
	brace     bool
	operators int
}

// tooDeep reports source that nests deeper than maxNesting, or chains more
// than maxOperators operators in one expression. It never recurses.
func tooDeep(name string, src []byte) *Diagnostic {
	if bytes.Count(src, []byte("<<")) > maxHeredocs {
		start := Range{Filename: name, Start: hcl2.InitialPos, End: hcl2.InitialPos}
		return Errorf(start, "too complex", "at most %d heredocs are allowed in a file", maxHeredocs)
	}
	tokens, _ := hclsyntax.LexConfig(src, name, hcl2.InitialPos)
	stack := []level{{brace: true}}
	for _, t := range tokens {
		top := &stack[len(stack)-1]
		switch {
		case opens(t.Type):
			top.operators++
			stack = append(stack, level{brace: t.Type == hclsyntax.TokenOBrace})
		case closes(t.Type) && len(stack) > 1:
			stack = stack[:len(stack)-1]
		case t.Type == hclsyntax.TokenNewline && top.brace, t.Type == hclsyntax.TokenComma:
			top.operators = 0
		case operator(t.Type):
			top.operators++
		}
		if len(stack) > maxNesting || top.operators > maxOperators {
			return Errorf(t.Range, "too complex", "at most %d levels of nesting and %d operators in one expression are allowed", maxNesting, maxOperators)
		}
	}
	return nil
}

func opens(t hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenTemplateInterp,
		hclsyntax.TokenTemplateControl, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
		return true
	}
	return false
}

func closes(t hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenCBrace, hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenTemplateSeqEnd,
		hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
		return true
	}
	return false
}

func operator(t hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenPercent,
		hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq,
		hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd, hclsyntax.TokenOr,
		hclsyntax.TokenBang, hclsyntax.TokenQuestion, hclsyntax.TokenDot:
		return true
	}
	return false
}
