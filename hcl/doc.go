// Package hcl is the configuration language of the agent and the aggregator:
// strict loading with diagnostics that name file, line and column, typed
// values (durations, sizes, paths), functions, shared blocks, the value tree
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
// # What there is
//
//   - Loading: [Load], [Parse] and [File]; [FormatFile] and [Format] are config fmt.
//   - Decoding into structs by their tags, see below: [Decode], [DecodeBody],
//     [DecodeExpression]; field types of one's own are a [ValueDecoder], structs that check
//     themselves a [Validator]. [BodyOf] makes a body that is not written in a file.
//   - What a decoded struct holds, as JSON: [EncodeJSON], [DecodeJSON], [Members], [MembersOf].
//     What its tags say, for help and documentation: [SettingsOf].
//   - Problems: [Diagnostics] with [Errorf] and [Warnf]; [Suggest] and [DidYouMean] say which name was meant,
//     [FileError] what is wrong with a file, [Places] where in a block something is wrong, [HideSecrets] leaves secrets out.
//   - Values, each with its Range: [Duration], [Size], [Address], [Time], [Path] (relative to
//     the file that it is written in), [String] (Value, Sensitive), [Decimal] (exact). [List],
//     which is one value or several, its kind [Strings], and [Absolute] have none.
//     [ParseDuration], [ParseSize], [ParseDecimal], [ParseBytes], [ParseSeconds] and
//     [CompilePattern] read texts without HCL.
//   - Functions: [Functions] of a configuration, with env() and file(); [OfflineFunctions], the
//     same without a look at this machine; [ExpressionFunctions] of jobs, which are pure.
//   - Shared blocks: [TLS] (Check looks at its files, decoding does not), [Plugin], [Log],
//     [Metrics].
//   - The value tree that plugins get: [Evaluate], [EvaluateLater], [Tree], [Node], [Value].
//   - Expressions that are evaluated later, per job: [ParseExpression], [Refs], [NewScope],
//     [Literal], [Attribute], [Template].
//
// Body, Range, Expression, EvalContext and Diagnostic are aliases of types of
// hashicorp/hcl/v2, so a daemon rarely imports that package.
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
//	NameAt  Range           `hcl:"name,attr_range"`  // of an attribute
//	Places  Places          `hcl:",places"`          // of the header, the labels and the attributes
//
// An attribute may have more tags:
//
//	Timeout time.Duration `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"for one post"`
//	Method  string        `hcl:"method,optional" default:"POST" allowed:"POST PUT"`
//	Users   Strings       `hcl:"users,optional" default:"[\"root\"]"`
//	CA      Absolute      `hcl:"ca,optional" unset:"those of the system" doc:"authorities to trust"`
//
//	Type    String        `hcl:"type,label" match:"[a-z0-9-]+" want:"a-z, 0-9 and '-'"`
//
// Labels may have allowed, match and want too. A default is text, or an expression when it begins with [ or {; it is set when the
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
