package mapping

import (
	"fmt"
	"maps"
	"slices"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Options of [Compile].
type Options struct {
	Agent string // the agent's name
	Type  string // the source's type
	Label string // the source's label
	// AgentVersion and SourceVersion are the versions of the program that maps and of the
	// source's plugin; null in expressions where they are "".
	AgentVersion, SourceVersion string

	Attributes []*bursarv1.Attribute
	// Default is the plugin's mapping, a body in HCL.
	Default string
	// Record is the body of the configuration's record block; nil without one.
	Record hcl.Body
	// ReusesIDs: runs with the same id are distinguished by submit.
	ReusesIDs bool
	// Imported: the jobs are records of another accounting system, which are kept as they
	// are, also where the stop is before the start.
	Imported bool
	// Dir is the folder from which file() counts.
	Dir string
}

// Mapper maps the jobs of one source. It is for one goroutine at a time.
type Mapper struct {
	columns map[string]int
	types   []bursarv1.Type
	used    []int           // columns that the mapping names
	keys    map[string]bool // of columns of type map that it names, see WantedKeys
	digest  uint64

	imported bool

	when, id, start, stop, submit, state, code, signal program
	meta                                               []metaProgram // of metas that list their keys, by key
	metaBase, metaOver                                 program       // metas that do not, of the default mapping and of the record block
	listBase, listOver                                 program       // lists of components, likewise
	components                                         []component   // of blocks; those of the record block first

	changes Changes
	decided []string // the parts of a record that the record block has, by name
	env     env
}

type metaProgram struct {
	key   string
	mine  bool   // the record block has it
	part  string // its name in an error
	value program
}

type component struct {
	name    string
	mine    bool // the record block has it
	kind    record.Kind
	amount  program // nil where it has amounts
	amounts program // of each entry of a map; nil where it has an amount
	key     string  // it is of that entry alone; "": of all, and the name has a star
	when    program
	scores  []score

	amountPart, whenPart string // their names in an error
}

type score struct {
	name  string
	value program
	when  program

	valuePart, whenPart string
}

// Compile checks a mapping and returns it ready for jobs. All problems are
// reported together: what could be decoded is checked beside what could not. The
// Mapper is nil when one is an error.
func Compile(opt Options) (*Mapper, hcl.Diagnostics) {
	c := compiler{opt: opt, mapper: &Mapper{imported: opt.Imported, columns: map[string]int{}, keys: map[string]bool{}}}
	c.declareAttributes()
	fallback, mine := c.decodeBlocks()
	c.torn = c.diags.HasErrors()
	c.compileBlock(fallback, mine)
	if c.diags.HasErrors() {
		return nil, c.diags
	}
	c.finishMapper()
	return c.mapper, c.diags
}

type compiler struct {
	opt    Options
	mapper *Mapper
	scope  *hcl.Scope
	names  map[string]bool // attributes that are used
	slow   map[string]bool // of these, those that HCL needs
	diags  hcl.Diagnostics
	torn   bool // a part could not be decoded: what is missing may be in it
	dated  bool // a version is used

	constants map[string]map[string]cty.Value
}

// declareAttributes makes the scope of the declared attributes.
func (c *compiler) declareAttributes() {
	job := hcl.Object{}
	for i, a := range c.opt.Attributes {
		job[a.GetName()] = ctyType(a.GetType())
		c.mapper.columns[a.GetName()] = i
		c.mapper.types = append(c.mapper.types, a.GetType())
	}
	c.names, c.slow = map[string]bool{}, map[string]bool{}
	objects := map[string]hcl.Object{"job": job}
	c.constants = c.opt.constantVariables()
	for name, values := range c.constants {
		objects[name] = hcl.Object{}
		for attribute := range values {
			objects[name][attribute] = cty.String
		}
	}
	c.scope = hcl.NewScope(c.opt.Dir, objects)
	c.mapper.env = newEnv(c.constants, c.scope)
}

// constantVariables are the variables that are the same for each job.
func (o *Options) constantVariables() map[string]map[string]cty.Value {
	return map[string]map[string]cty.Value{
		"source": {"label": cty.StringVal(o.Label), "type": cty.StringVal(o.Type), "version": textOrNull(o.SourceVersion)},
		"agent":  {"name": cty.StringVal(o.Agent), "version": textOrNull(o.AgentVersion)},
	}
}

// textOrNull returns a text; null for "".
func textOrNull(text string) cty.Value {
	if text == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(text)
}

func ctyType(t bursarv1.Type) cty.Type {
	switch t {
	case bursarv1.Type_TYPE_STRING, bursarv1.Type_TYPE_TIME:
		return cty.String
	case bursarv1.Type_TYPE_INT, bursarv1.Type_TYPE_FLOAT:
		return cty.Number
	case bursarv1.Type_TYPE_BOOL:
		return cty.Bool
	case bursarv1.Type_TYPE_LIST:
		return cty.List(cty.String)
	}
	return cty.DynamicPseudoType
}

// maxDefault bounds the default mapping, which a plugin has written: the parser takes some
// 17 kB of stack for a level of nesting, and a process of Go ends at 1 GB.
const maxDefault = 16 << 10

// decodeBlocks reads the default mapping and the record block.
func (c *compiler) decodeBlocks() (fallback, mine block) {
	name := "default mapping of " + c.opt.Type
	text := c.opt.Default
	if len(text) > maxDefault {
		c.addError(hcl.Range{Filename: name}, "default mapping is too large", "the plugin's default mapping has %d bytes, at most %d are allowed", len(text), maxDefault)
		text = ""
	}
	file, diags := hcl.Parse(name, []byte(text))
	c.diags.Extend(diags)
	if !diags.HasErrors() {
		c.diags.Extend(hcl.Decode(file, &fallback, &hcl.EvalContext{}))
	}
	if c.opt.Record != nil {
		c.diags.Extend(hcl.DecodeBody(c.opt.Record, &mine, &hcl.EvalContext{}))
	}
	return fallback, mine
}

func (c *compiler) compileBlock(fallback, mine block) {
	m := c.mapper
	c.noteChanges(fallback, mine)
	if mine.withoutDefaults() {
		fallback = block{}
	}
	b := mine.withFallback(fallback)
	if (b.ID == nil || b.Start == nil) && !c.torn {
		c.addError(missingItemRange(c.opt.Record), "incomplete mapping", "a record needs id and start; neither this block nor the default mapping sets both, and defaults = false ignores the default mapping")
	}
	m.when = c.compileExpression(b.When, cty.Bool)
	m.id = c.compileExpression(b.ID, cty.String)
	m.start, m.stop, m.submit = c.compileExpression(b.Start, cty.DynamicPseudoType), c.compileExpression(b.Stop, cty.DynamicPseudoType), c.compileExpression(b.Submit, cty.DynamicPseudoType)
	if k, ok := m.submit.(constant); c.opt.ReusesIDs && !c.torn && (b.Submit == nil || ok && k.value.kind == kindNull) {
		c.diags.Add(hcl.Warnf(missingItemRange(c.opt.Record), "missing submit",
			"%s reuses job numbers, and runs with the same number are distinguished by submit; without it a new run replaces an old one. Set submit or keep the default", c.opt.Type))
	}
	m.state = c.compileExpression(b.State, cty.String)
	m.code, m.signal = c.compileExpression(b.ExitCode, cty.Number), c.compileExpression(b.ExitSignal, cty.Number)
	m.metaBase, m.metaOver = c.compileMeta(fallback.Meta, false), c.compileMeta(mine.Meta, true)
	slices.SortFunc(m.meta, func(a, b metaProgram) int { return compareText(a.key, b.key) })
	m.listBase, m.listOver = c.compileList(fallback.All), c.compileList(mine.All)
	for i := range b.Components {
		m.components = append(m.components, c.compileComponent(&b.Components[i]))
	}
}

func missingItemRange(body hcl.Body) hcl.Range {
	if body == nil {
		return hcl.Range{}
	}
	return body.MissingItemRange()
}

func (c *compiler) addError(r hcl.Range, summary, format string, args ...any) {
	c.diags.Add(hcl.Errorf(r, summary, format, args...))
}

// compileList compiles a list of components.
func (c *compiler) compileList(expr hcl.Expression) program {
	p := c.compileExpression(expr, cty.DynamicPseudoType)
	if k, ok := p.(constant); ok && !slices.Contains([]kind{kindNull, kindText, kindOther}, k.value.kind) {
		c.addError(expr.Range(), "invalid components", "want a list of components; a block component \"NAME\" { … } makes one of them")
	}
	return p
}

// compileMeta compiles a meta that lists its keys key by key, those of the record block in place
// of the default's, and returns a program for any other.
func (c *compiler) compileMeta(expr hcl.Expression, mine bool) program {
	pairs, ok := metaKeys(expr)
	if !ok {
		return c.compileExpression(expr, cty.DynamicPseudoType)
	}
	if mine {
		c.mapper.meta = slices.DeleteFunc(c.mapper.meta, func(m metaProgram) bool {
			return slices.ContainsFunc(pairs, func(p metaKey) bool { return p.key == m.key })
		})
	}
	for _, p := range pairs {
		if problem := record.ValidateName(p.key); problem != "" {
			c.addError(p.pair.Key.Range(), "invalid meta key", "%q %s", p.key, problem)
		}
		if slices.ContainsFunc(c.mapper.meta, func(m metaProgram) bool { return m.key == p.key }) {
			c.addError(p.pair.Key.Range(), "duplicate meta key", "%q is set more than once", p.key)
		}
		c.mapper.meta = append(c.mapper.meta, metaProgram{p.key, mine, "meta " + p.key, c.compileExpression(p.pair.Value, cty.DynamicPseudoType)})
	}
	return nil
}

// metaKey is a key of a meta that lists them.
type metaKey struct {
	key  string
	pair hcl2.KeyValuePair
}

// metaKeys returns the keys of a meta; false where it is an expression that makes them for
// each job.
func metaKeys(expr hcl.Expression) ([]metaKey, bool) {
	if expr == nil {
		return nil, true
	}
	pairs, diags := hcl2.ExprMap(expr)
	if diags.HasErrors() {
		return nil, false
	}
	var keys []metaKey
	for _, p := range pairs {
		key, ok := hcl.Literal(p.Key)
		if word := hcl2.ExprAsKeyword(p.Key); word != "" {
			key, ok = cty.StringVal(word), true
		}
		if !ok || key.IsNull() || key.Type() != cty.String {
			return nil, false
		}
		keys = append(keys, metaKey{key.AsString(), p})
	}
	return keys, true
}

func (c *compiler) compileComponent(b *componentBlock) component {
	part := fmt.Sprintf("component %q ", b.Name)
	out := component{
		name: b.Name, mine: b.refines, amount: c.compileExpression(b.Amount, cty.Number), amounts: c.compileAmounts(b.Amounts), key: b.key,
		when: c.compileExpression(b.When, cty.Bool), amountPart: part + "amount", whenPart: part + "when",
	}
	if b.Amounts != nil {
		out.amountPart += "s"
	}
	if problem := c.checkLabel(b.Name); problem != "" {
		c.addError(b.Range, "invalid component name", "%q %s", b.Name, problem)
	}
	c.checkAmount(b)
	switch b.Kind {
	case "", "rate":
	case "total":
		out.kind = record.Total
	default:
		c.addError(b.Range, "invalid kind", "kind is %q, want \"rate\" (used for as long as the job runs) or \"total\" (consumed over the run)", b.Kind)
	}
	for i := range b.Scores {
		s := &b.Scores[i]
		if problem := c.checkLabel(s.Name); problem != "" {
			c.addError(s.Range, "invalid score name", "%q %s", s.Name, problem)
		}
		out.scores = append(out.scores, c.compileScore(part, s))
	}
	return out
}

// checkLabel says what is wrong with a label; what could not be decoded has been
// reported.
func (c *compiler) checkLabel(label string) string {
	if label == "" && c.torn {
		return ""
	}
	return record.ValidateName(label)
}

func (c *compiler) compileScore(part string, s *scoreBlock) score {
	part += fmt.Sprintf("score %q", s.Name)
	return score{name: s.Name, value: c.compileExpression(s.Value, cty.Number), when: c.compileExpression(s.When, cty.Bool), valuePart: part, whenPart: part + " when"}
}

// compileExpression checks and compiles one expression; nil for none.
func (c *compiler) compileExpression(expr hcl.Expression, want cty.Type) program {
	if expr == nil {
		return nil
	}
	diags := c.scope.Check(expr, want)
	c.diags.Extend(diags)
	if diags.HasErrors() {
		return nil
	}
	for _, ref := range hcl.Refs(expr) {
		c.noteReference(ref)
	}
	if p := c.compileWithoutHCL(expr); p != nil {
		return p
	}
	e := &evaluated{expr: expr, env: &c.mapper.env, seen: map[string]value{}}
	for _, ref := range hcl.Refs(expr) {
		if ref.Root == "job" && len(ref.Path) > 0 {
			c.slow[ref.Path[0]] = true
			i := c.mapper.columns[ref.Path[0]]
			e.names = append(e.names, slot{ref.Path[0], i, c.mapper.types[i]})
		}
	}
	return e
}

func (c *compiler) noteReference(ref hcl.Ref) {
	if ref.Root != "job" {
		c.dated = c.dated || len(ref.Path) == 0 || ref.Path[0] == "version"
		return
	}
	if len(ref.Path) == 0 {
		c.addError(ref.Range, "invalid reference", "name the attribute, as in job.NAME; job as a whole cannot be used")
		return
	}
	c.names[ref.Path[0]] = true
	m := c.mapper
	switch i, ok := m.columns[ref.Path[0]]; {
	case !ok || m.types[i] != bursarv1.Type_TYPE_MAP:
	case len(ref.Path) == 1:
		m.keys[ref.Path[0]+".*"] = true
	default:
		m.keys[ref.Path[0]+"."+ref.Path[1]] = true
	}
}

// compileWithoutHCL returns a program that does without HCL; nil when the expression needs
// it.
func (c *compiler) compileWithoutHCL(expr hcl.Expression) program {
	if v, ok := hcl.Literal(expr); ok {
		return constant{fromCty(v), expr.Range()}
	}
	if path, ok := hcl.Attribute(expr); ok {
		return c.compileAttribute(path, expr.Range())
	}
	parts, ok := hcl.Template(expr)
	if !ok {
		return nil
	}
	t := &template{at: expr.Range()}
	for _, p := range parts {
		if p.Path == nil {
			t.parts = append(t.parts, constant{value{kind: kindText, text: p.Text}, t.at})
			continue
		}
		part := c.compileAttribute(p.Path, t.at)
		if part == nil {
			return nil
		}
		t.parts = append(t.parts, part)
	}
	return t
}

// compileAttribute returns a program for job.X, source.X and agent.X; nil for a deeper
// path.
func (c *compiler) compileAttribute(path []string, at hcl.Range) program {
	if len(path) != 2 {
		return nil
	}
	if v, ok := c.constants[path[0]][path[1]]; ok {
		return constant{fromCty(v), at}
	}
	i := c.mapper.columns[path[1]]
	if path[0] != "job" || c.mapper.types[i] == bursarv1.Type_TYPE_MAP {
		return nil
	}
	return column{i, c.mapper.types[i], at}
}

// finishMapper notes which columns are used and hashes the mapping.
func (c *compiler) finishMapper() {
	m := c.mapper
	for name := range c.names {
		m.used = append(m.used, m.columns[name])
	}
	slices.Sort(m.used)
	for name := range c.slow {
		i := m.columns[name]
		m.env.slow = append(m.env.slow, slot{name, i, m.types[i]})
	}
	slices.SortFunc(m.env.slow, func(a, b slot) int { return a.index - b.index })
	m.digest = c.hashMapping()
}

// Wanted returns the attributes that the mapping names, sorted.
func (m *Mapper) Wanted() []string {
	var names []string
	for name, i := range m.columns {
		if slices.Contains(m.used, i) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// WantedKeys returns the keys of columns of type map that the mapping names, as
// column.key, sorted; column.* where it uses the column as a whole.
func (m *Mapper) WantedKeys() []string { return slices.Sorted(maps.Keys(m.keys)) }

// hashMapping hashes all that decides what a job becomes beside its attributes; versions only
// where the mapping names one, since jobs need not be sent again after an update.
func (c *compiler) hashMapping() uint64 {
	h := newHash()
	h.addText(c.opt.Agent)
	h.addText(c.opt.Type)
	h.addText(c.opt.Label)
	h.addText(c.opt.Default)
	for _, i := range c.mapper.used {
		h.addText(c.opt.Attributes[i].GetName())
		h.addNumber(uint64(c.mapper.types[i]))
	}
	h.addText(sourceOf(c.opt.Record))
	if c.dated {
		h.addText(c.opt.AgentVersion)
		h.addText(c.opt.SourceVersion)
	}
	return uint64(h)
}
