// Package hcl is the configuration language of the agent and the aggregator:
// strict loading with diagnostics that name file, line and column, typed
// values (durations, sizes, secrets), functions, shared blocks, the value tree
// that plugins get, and checks of expressions before they run.
//
// # Use
//
//	file, diags := hcl.Load("/etc/bursar/agent.hcl") // or a directory, or several paths
//	cfg := config.Default()
//	diags.Extend(hcl.Decode(file, &cfg, file.Context()))
//	if diags.HasErrors() {
//		diags.Write(os.Stderr, file.Sources, color)
//		return diags.Err()
//	}
//
// # Exported API
//
// Loading:
//
//	Load(paths ...string) (*File, Diagnostics)             // files and directories; File is never nil
//	Parse(name string, src []byte) (*File, Diagnostics)    // one file from memory
//	File{Body Body, Dir string, Paths []string, Sources Sources}
//	(*File).Context() *EvalContext                         // Functions(file.Dir), no variables
//	Format(src []byte) []byte; FormatFile(name, src) ([]byte, Diagnostics)   // config fmt
//
// Decoding into structs (tags as in gohcl, see below):
//
//	Decode(file *File, target any, ctx *EvalContext) Diagnostics
//	DecodeBody(body Body, target any, ctx *EvalContext) Diagnostics
//	BodyOf(at Range, items []Item) Body                    // a body that came from elsewhere
//	DecodeExpression(expr Expression, target any, ctx *EvalContext) Diagnostics
//	ValueDecoder  interface{ DecodeHCL(v cty.Value, r Range) error }   // a field type of your own
//	Validator     interface{ ValidateHCL() Diagnostics }               // called after a block is decoded
//
// Diagnostics:
//
//	Diagnostics []*Diagnostic: Extend, Add, HasErrors, Err, Error, Write(w, sources, color), MarshalJSON
//	Errorf(r Range, summary, format string, args...) *Diagnostic; Warnf(...)
//	Suggest(name string, candidates []string) string; OneOf(value String, allowed ...string) Diagnostics
//
// Values, each with its Range: Duration{time.Duration}, Size{Bytes int64},
// Address{Host, Port}, Secret (Reveal()), Time{time.Time}, Path (absolute, or
// relative to the file that it is written in), String (Value, Sensitive),
// Decimal (Billionths, exact); List, which is one value or several, its kind Strings, and
// Absolute, a path, have none.
// ParseDuration, ParseSize, ParseAddress, ParseDecimal are the parsers without HCL.
//
// Functions:
//
//	Functions(dir string) map[string]function.Function     // configuration: with env() and file()
//	OfflineFunctions() map[string]function.Function        // the same without a look at this machine
//	ExpressionFunctions() map[string]function.Function     // per-job expressions: pure
//	ParseBytes(string), ParseSeconds(string)               // what bytes() and seconds() do
//
// Shared blocks: TLS (Check() looks at its files, decoding does not), Plugin,
// Log (SlogLevel, Handler), Metrics.
//
// Value tree for plugins:
//
//	Evaluate(body Body, ctx *EvalContext) (Tree, Diagnostics)
//	EvaluateLater(body Body, ctx *EvalContext, sources Sources, variables ...string) (Tree, Diagnostics)
//	Tree{Nodes []Node, Range}; Node{Name, Labels, Block, Value, Expression, Children, Range}
//	Value{Kind, Str, Int, Float, Bool, List []Value, Map []Entry, Sensitive, Range}
//
// Expressions that are evaluated later, per job:
//
//	ParseExpression(text string, at Range) (Expression, Diagnostics) // a Node's Expression
//	Refs(expr) []Ref                        // which variables and attributes it names
//	NewScope(dir, map[string]Object) *Scope // what may be named, and the types
//	(*Scope).Check(expr, want cty.Type) Diagnostics
//	(*Scope).Functions() map[string]function.Function // use these to evaluate
//	Literal(expr) (cty.Value, bool); Attribute(expr) ([]string, bool); Template(expr) ([]Part, bool)
//
// Body, Range, Expression, EvalContext, Diagnostic and Block are aliases of
// the types of hashicorp/hcl/v2, so a daemon rarely imports that package.
//
// # Tags
//
//	Name    string          `hcl:"name"`             // required attribute
//	Every   Duration        `hcl:"every,optional"`   // keeps its old value when absent or null
//	Listen  *string         `hcl:"listen"`           // optional: nil when absent
//	Amount  Expression      `hcl:"amount"`           // not evaluated; nil is impossible when required
//	When    Expression      `hcl:"when,optional"`    // nil when absent
//	Type    string          `hcl:"type,label"`       // labels, in order
//	TLS     *TLS            `hcl:"tls,block"`        // at most one; nil when absent; a struct that is no pointer is required
//	Sources []Source        `hcl:"source,block"`     // any number, labels must differ
//	Parts   []Component     `hcl:"component,block,repeat"` // any number, the same labels may repeat
//	Limits  Limits          `hcl:"limits,block,optional"`  // a struct that keeps its defaults when absent
//	Config  Body            `hcl:"config,block"`     // the body of an optional block, undecoded; nil when absent
//	Rest    Body            `hcl:",remain"`          // what no other field took
//	Range   Range           `hcl:",def_range"`       // of the block's header
//	NameAt  Range           `hcl:"name,attr_range"`  // of an attribute; also attr_name_range, attr_value_range, label_range
//
// An attribute may have more tags:
//
//	Timeout time.Duration `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"for one post"`
//	Method  string        `hcl:"method,optional" default:"POST" allowed:"POST PUT"`
//	Users   Strings       `hcl:"users,optional" default:"[\"root\"]"`
//	CA      Absolute      `hcl:"ca,optional" unset:"those of the system" doc:"authorities to trust"`
//
// A default is text, or an expression when it begins with [ or {; it is set when the
// field is zero and the attribute is absent or null. Bounds are written as the attribute
// is. SettingsOf lists what the tags of a struct say, for help and documentation.
//
// Field types: strings, booleans, numbers, slices and maps of these, pointers
// to these, time.Duration (as ParseDuration reads it), cty.Value, Expression,
// everything that implements ValueDecoder or encoding.TextUnmarshaler, and
// slices and maps of those. A map[string]Expression is a map that is written out,
// whose keys are constants and differ and whose values are evaluated later.
//
// Everything else that a body holds is an error with a suggestion; all problems
// of all blocks are reported together. Nothing in a configuration file makes
// this package panic; a tag that is wrong in the program does.
package hcl
